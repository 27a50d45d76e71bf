"""Volumes, their attachments, snapshots and types."""

from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from causeway.devcloud.tables.base import Base, new_id, now


class VolumeType(Base):
    __tablename__ = "volume_types"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str | None]
    is_public: Mapped[bool] = mapped_column(default=True)
    extra_specs: Mapped[dict[str, Any]] = mapped_column(default=dict)


class Volume(Base):
    __tablename__ = "volumes"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str | None]
    description: Mapped[str | None]
    project_id: Mapped[str] = mapped_column(index=True)
    user_id: Mapped[str]
    size: Mapped[int]
    status: Mapped[str] = mapped_column(default="creating")
    bootable: Mapped[bool] = mapped_column(default=False)
    readonly: Mapped[bool] = mapped_column(default=False)
    multiattach: Mapped[bool] = mapped_column(default=False)
    volume_type_id: Mapped[str] = mapped_column(ForeignKey("volume_types.id"))
    availability_zone: Mapped[str] = mapped_column(default="nova")
    snapshot_id: Mapped[str | None]
    source_volid: Mapped[str | None]
    properties: Mapped[dict[str, Any]] = mapped_column(default=dict)
    image_metadata: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)
    volume_type: Mapped[VolumeType] = relationship()
    attachments: Mapped[list["Attachment"]] = relationship(
        back_populates="volume", cascade="all, delete-orphan", order_by="Attachment.created_at"
    )


class VolumeMigration(Base):
    """A volume that is being moved, or the target of such a move (``target:ID``)."""

    __tablename__ = "volume_migrations"
    volume_id: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str]


class SnapshotProgress(Base):
    """The progress of a snapshot that Compute makes, as Compute reports it."""

    __tablename__ = "snapshot_progress"
    snapshot_id: Mapped[str] = mapped_column(primary_key=True)
    progress: Mapped[str]


class Attachment(Base):
    __tablename__ = "attachments"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    volume_id: Mapped[str] = mapped_column(ForeignKey("volumes.id"), index=True)
    project_id: Mapped[str] = mapped_column(index=True)
    instance_id: Mapped[str | None] = mapped_column(index=True)
    status: Mapped[str] = mapped_column(default="reserved")
    mode: Mapped[str] = mapped_column(default="null")
    connector: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[str] = mapped_column(default=now)
    attached_at: Mapped[str | None]
    volume: Mapped[Volume] = relationship(back_populates="attachments")


class Snapshot(Base):
    __tablename__ = "snapshots"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    volume_id: Mapped[str] = mapped_column(ForeignKey("volumes.id"), index=True)
    project_id: Mapped[str] = mapped_column(index=True)
    user_id: Mapped[str]
    name: Mapped[str | None]
    description: Mapped[str | None]
    size: Mapped[int]
    status: Mapped[str] = mapped_column(default="creating")
    properties: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)


class VolumeTransfer(Base):
    """An offer of a volume to whoever knows the key."""

    __tablename__ = "volume_transfers"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    volume_id: Mapped[str] = mapped_column(ForeignKey("volumes.id"), unique=True)
    name: Mapped[str | None]
    key_hash: Mapped[str]
    with_snapshots: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[str] = mapped_column(default=now)
