"""Images and their members."""

from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from causeway.devcloud.tables.base import Base, new_id, now


class Image(Base):
    __tablename__ = "images"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str | None]
    owner: Mapped[str] = mapped_column(index=True)
    status: Mapped[str] = mapped_column(default="queued")
    visibility: Mapped[str] = mapped_column(default="shared")
    disk_format: Mapped[str | None]
    container_format: Mapped[str | None]
    min_disk: Mapped[int] = mapped_column(default=0)
    min_ram: Mapped[int] = mapped_column(default=0)
    protected: Mapped[bool] = mapped_column(default=False)
    os_hidden: Mapped[bool] = mapped_column(default=False)
    size: Mapped[int | None]
    virtual_size: Mapped[int | None]
    checksum: Mapped[str | None]
    os_hash_algo: Mapped[str | None]
    os_hash_value: Mapped[str | None]
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)
    properties: Mapped[dict[str, Any]] = mapped_column(default=dict)
    tags: Mapped[list[str]] = mapped_column(default=list)
    members: Mapped[list["ImageMember"]] = relationship(cascade="all, delete-orphan", order_by="ImageMember.created_at")


class ImageMember(Base):
    __tablename__ = "image_members"
    image_id: Mapped[str] = mapped_column(ForeignKey("images.id"), primary_key=True)
    member_id: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(default="pending")
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)
