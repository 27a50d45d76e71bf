"""Accounts, their rights, the catalog and tokens."""

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from causeway.devcloud.tables.base import Base, new_hex


class Domain(Base):
    __tablename__ = "domains"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_hex)
    name: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str] = mapped_column(default="")
    enabled: Mapped[bool] = mapped_column(default=True)


class Project(Base):
    __tablename__ = "projects"
    __table_args__ = (UniqueConstraint("domain_id", "name"),)
    id: Mapped[str] = mapped_column(primary_key=True, default=new_hex)
    name: Mapped[str]
    domain_id: Mapped[str] = mapped_column(ForeignKey("domains.id"))
    parent_id: Mapped[str]
    description: Mapped[str] = mapped_column(default="")
    enabled: Mapped[bool] = mapped_column(default=True)
    tags: Mapped[list[str]] = mapped_column(default=list)


class User(Base):
    __tablename__ = "users"
    __table_args__ = (UniqueConstraint("domain_id", "name"),)
    id: Mapped[str] = mapped_column(primary_key=True, default=new_hex)
    name: Mapped[str]
    domain_id: Mapped[str] = mapped_column(ForeignKey("domains.id"))
    password_hash: Mapped[str | None]
    description: Mapped[str] = mapped_column(default="")
    email: Mapped[str | None]
    default_project_id: Mapped[str | None]
    enabled: Mapped[bool] = mapped_column(default=True)


class Group(Base):
    __tablename__ = "groups"
    __table_args__ = (UniqueConstraint("domain_id", "name"),)
    id: Mapped[str] = mapped_column(primary_key=True, default=new_hex)
    name: Mapped[str]
    domain_id: Mapped[str] = mapped_column(ForeignKey("domains.id"))
    description: Mapped[str] = mapped_column(default="")


class Membership(Base):
    __tablename__ = "memberships"
    group_id: Mapped[str] = mapped_column(ForeignKey("groups.id"), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True)


class Role(Base):
    __tablename__ = "roles"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_hex)
    name: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str | None]


class ImpliedRole(Base):
    __tablename__ = "implied_roles"
    prior_id: Mapped[str] = mapped_column(ForeignKey("roles.id"), primary_key=True)
    implied_id: Mapped[str] = mapped_column(ForeignKey("roles.id"), primary_key=True)


class Assignment(Base):
    __tablename__ = "assignments"
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    role_id: Mapped[str] = mapped_column(ForeignKey("roles.id"), primary_key=True)


class Region(Base):
    __tablename__ = "regions"
    id: Mapped[str] = mapped_column(primary_key=True)
    description: Mapped[str] = mapped_column(default="")


class Service(Base):
    __tablename__ = "services"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_hex)
    type: Mapped[str]
    name: Mapped[str]
    description: Mapped[str] = mapped_column(default="")
    enabled: Mapped[bool] = mapped_column(default=True)


class Endpoint(Base):
    __tablename__ = "endpoints"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_hex)
    service_id: Mapped[str] = mapped_column(ForeignKey("services.id"))
    interface: Mapped[str]
    region_id: Mapped[str] = mapped_column(ForeignKey("regions.id"))
    url: Mapped[str]
    enabled: Mapped[bool] = mapped_column(default=True)


class Token(Base):
    """A token by its SHA-256. The token itself is never stored."""

    __tablename__ = "tokens"
    digest: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(index=True)
    project_id: Mapped[str | None]
    methods: Mapped[list[str]]
    audit_ids: Mapped[list[str]]
    issued_at: Mapped[str]
    expires_at: Mapped[str]


Index("assignments_by_project", Assignment.project_id)
