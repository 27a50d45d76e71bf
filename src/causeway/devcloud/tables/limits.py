"""Unified limits: Identity's limits of projects for resources of other services."""

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from causeway.devcloud.tables.base import Base, new_hex


class RegisteredLimit(Base):
    """The limit of every project without its own limit. ``region_id`` None: for the service without a region."""

    __tablename__ = "registered_limits"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_hex)
    service_id: Mapped[str] = mapped_column(ForeignKey("services.id"))
    region_id: Mapped[str | None] = mapped_column(ForeignKey("regions.id"))
    resource_name: Mapped[str]
    default_limit: Mapped[int]
    description: Mapped[str | None]


class ProjectLimit(Base):
    """A project's own limit, in place of the registered one."""

    __tablename__ = "project_limits"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_hex)
    registered_limit_id: Mapped[str] = mapped_column(ForeignKey("registered_limits.id"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    resource_limit: Mapped[int]
    description: Mapped[str | None]
