"""Where devcloud keeps what it knows: one SQLite file, one session, one lock.

Devcloud is one process, so all requests share a single session under a lock, and rows that were read once stay in
memory: a read by primary key costs no SQL, a write costs one short transaction. Bytes (images, volumes) are files.
Times are UTC text with microseconds, so that they sort as they are.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from sqlalchemy import JSON, ForeignKey, Index, UniqueConstraint, create_engine, event
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship
from sqlalchemy.pool import StaticPool

type_annotations: dict[Any, Any] = {dict[str, Any]: JSON, list[Any]: JSON, list[str]: JSON}


def now() -> str:
    """The present time as rows keep it: UTC, microseconds, no zone suffix."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


def new_id() -> str:
    """A random UUID with dashes, as Image, Network and Block Storage use it."""
    return str(uuid4())


def new_hex() -> str:
    """A random UUID without dashes, as Identity uses it."""
    return uuid4().hex


class Base(DeclarativeBase):
    type_annotation_map = type_annotations


# --- Identity -----------------------------------------------------------------------------------------------------


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
    """A token by its SHA-256; the token itself is never kept."""

    __tablename__ = "tokens"
    digest: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(index=True)
    project_id: Mapped[str | None]
    methods: Mapped[list[str]]
    audit_ids: Mapped[list[str]]
    issued_at: Mapped[str]
    expires_at: Mapped[str]


# --- Image --------------------------------------------------------------------------------------------------------


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


# --- Network ------------------------------------------------------------------------------------------------------


class Network(Base):
    __tablename__ = "networks"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(default="")
    project_id: Mapped[str] = mapped_column(index=True)
    description: Mapped[str] = mapped_column(default="")
    admin_state_up: Mapped[bool] = mapped_column(default=True)
    shared: Mapped[bool] = mapped_column(default=False)
    external: Mapped[bool] = mapped_column(default=False)
    mtu: Mapped[int] = mapped_column(default=1450)
    network_type: Mapped[str] = mapped_column(default="vxlan")
    physical_network: Mapped[str | None]
    segmentation_id: Mapped[int | None] = mapped_column(unique=True)
    port_security_enabled: Mapped[bool] = mapped_column(default=True)
    dns_domain: Mapped[str] = mapped_column(default="")
    tags: Mapped[list[str]] = mapped_column(default=list)
    availability_zone_hints: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)
    subnets: Mapped[list["Subnet"]] = relationship(
        back_populates="network", order_by="Subnet.created_at", passive_deletes="all"
    )


class Subnet(Base):
    __tablename__ = "subnets"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(default="")
    project_id: Mapped[str] = mapped_column(index=True)
    network_id: Mapped[str] = mapped_column(ForeignKey("networks.id"), index=True)
    description: Mapped[str] = mapped_column(default="")
    ip_version: Mapped[int] = mapped_column(default=4)
    cidr: Mapped[str]
    gateway_ip: Mapped[str | None]
    enable_dhcp: Mapped[bool] = mapped_column(default=True)
    allocation_pools: Mapped[list[Any]] = mapped_column(default=list)
    dns_nameservers: Mapped[list[str]] = mapped_column(default=list)
    host_routes: Mapped[list[Any]] = mapped_column(default=list)
    ipv6_address_mode: Mapped[str | None]
    ipv6_ra_mode: Mapped[str | None]
    tags: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)
    network: Mapped[Network] = relationship(back_populates="subnets")


class Port(Base):
    __tablename__ = "ports"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(default="")
    project_id: Mapped[str] = mapped_column(index=True)
    network_id: Mapped[str] = mapped_column(ForeignKey("networks.id"), index=True)
    description: Mapped[str] = mapped_column(default="")
    mac_address: Mapped[str]
    admin_state_up: Mapped[bool] = mapped_column(default=True)
    status: Mapped[str] = mapped_column(default="DOWN")
    device_id: Mapped[str] = mapped_column(default="", index=True)
    device_owner: Mapped[str] = mapped_column(default="")
    port_security_enabled: Mapped[bool] = mapped_column(default=True)
    security_groups: Mapped[list[str]] = mapped_column(default=list)
    allowed_address_pairs: Mapped[list[Any]] = mapped_column(default=list)
    extra_dhcp_opts: Mapped[list[Any]] = mapped_column(default=list)
    dns_name: Mapped[str] = mapped_column(default="")
    propagate_uplink_status: Mapped[bool] = mapped_column(default=True)
    vnic_type: Mapped[str] = mapped_column(default="normal")
    tags: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)
    fixed_ips: Mapped[list["FixedIp"]] = relationship(cascade="all, delete-orphan", order_by="FixedIp.position")
    bindings: Mapped[list["PortBinding"]] = relationship(
        cascade="all, delete-orphan", order_by="PortBinding.created_at"
    )
    __table_args__ = (UniqueConstraint("network_id", "mac_address"),)


class FixedIp(Base):
    __tablename__ = "fixed_ips"
    subnet_id: Mapped[str] = mapped_column(ForeignKey("subnets.id"), primary_key=True)
    ip_address: Mapped[str] = mapped_column(primary_key=True)
    port_id: Mapped[str] = mapped_column(ForeignKey("ports.id"), index=True)
    position: Mapped[int] = mapped_column(default=0)


class PortBinding(Base):
    __tablename__ = "port_bindings"
    port_id: Mapped[str] = mapped_column(ForeignKey("ports.id"), primary_key=True)
    host: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str]
    vnic_type: Mapped[str] = mapped_column(default="normal")
    vif_type: Mapped[str] = mapped_column(default="unbound")
    vif_details: Mapped[dict[str, Any]] = mapped_column(default=dict)
    profile: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[str] = mapped_column(default=now)


class QosPolicy(Base):
    __tablename__ = "qos_policies"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    project_id: Mapped[str] = mapped_column(index=True)
    name: Mapped[str] = mapped_column(default="")
    description: Mapped[str] = mapped_column(default="")
    shared: Mapped[bool] = mapped_column(default=False)
    rules: Mapped[list[Any]] = mapped_column(default=list)


class QosAssociation(Base):
    """The policy of a port or network."""

    __tablename__ = "qos_associations"
    resource_id: Mapped[str] = mapped_column(primary_key=True)
    policy_id: Mapped[str] = mapped_column(ForeignKey("qos_policies.id"), index=True)


class SecurityGroup(Base):
    __tablename__ = "security_groups"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str]
    project_id: Mapped[str] = mapped_column(index=True)
    description: Mapped[str] = mapped_column(default="")
    stateful: Mapped[bool] = mapped_column(default=True)
    tags: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)
    rules: Mapped[list["SecurityGroupRule"]] = relationship(
        cascade="all, delete-orphan", order_by="SecurityGroupRule.created_at"
    )


class SecurityGroupRule(Base):
    __tablename__ = "security_group_rules"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    security_group_id: Mapped[str] = mapped_column(ForeignKey("security_groups.id"), index=True)
    project_id: Mapped[str] = mapped_column(index=True)
    direction: Mapped[str]
    ethertype: Mapped[str] = mapped_column(default="IPv4")
    protocol: Mapped[str | None]
    port_range_min: Mapped[int | None]
    port_range_max: Mapped[int | None]
    remote_ip_prefix: Mapped[str | None]
    remote_group_id: Mapped[str | None]
    description: Mapped[str] = mapped_column(default="")
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)


class Router(Base):
    __tablename__ = "routers"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(default="")
    project_id: Mapped[str] = mapped_column(index=True)
    description: Mapped[str] = mapped_column(default="")
    admin_state_up: Mapped[bool] = mapped_column(default=True)
    external_network_id: Mapped[str | None]
    tags: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)


class FloatingIp(Base):
    __tablename__ = "floating_ips"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    project_id: Mapped[str] = mapped_column(index=True)
    description: Mapped[str] = mapped_column(default="")
    floating_network_id: Mapped[str] = mapped_column(ForeignKey("networks.id"))
    floating_ip_address: Mapped[str]
    floating_port_id: Mapped[str]
    port_id: Mapped[str | None] = mapped_column(index=True)
    fixed_ip_address: Mapped[str | None]
    router_id: Mapped[str | None]
    tags: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)


class Host(Base):
    """A host that ports can be bound to."""

    __tablename__ = "hosts"
    name: Mapped[str] = mapped_column(primary_key=True)
    agent_id: Mapped[str] = mapped_column(default=new_id)
    created_at: Mapped[str] = mapped_column(default=now)


class Quota(Base):
    """A project's own limit for one resource of one service; what has no row has the service's default."""

    __tablename__ = "quotas"
    service: Mapped[str] = mapped_column(primary_key=True)
    project_id: Mapped[str] = mapped_column(primary_key=True)
    resource: Mapped[str] = mapped_column(primary_key=True)
    limit: Mapped[int]


# --- Block Storage ------------------------------------------------------------------------------------------------


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


Index("assignments_by_project", Assignment.project_id)


class Store:
    """The SQLite file and the lock around its one session."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._engine = create_engine(
            f"sqlite:///{path}",
            poolclass=StaticPool,
            connect_args={"check_same_thread": False},
            json_serializer=lambda value: msgspec.json.encode(value).decode(),
            json_deserializer=msgspec.json.decode,
        )
        event.listen(self._engine, "connect", _set_pragmas)
        Base.metadata.create_all(self._engine)
        self._session = Session(self._engine, expire_on_commit=False)
        self._depth = 0
        self._flushed = False
        self._kept: set[Base] = set()
        event.listen(self._session, "after_flush", self._note_flush)
        for arrival in ("loaded_as_persistent", "pending_to_persistent", "deleted_to_persistent"):
            event.listen(self._session, arrival, lambda _session, row: self._kept.add(row))
        for departure in ("persistent_to_deleted", "persistent_to_transient", "persistent_to_detached"):
            event.listen(self._session, departure, lambda _session, row: self._kept.discard(row))

    @property
    def session(self) -> Session:
        """The session itself; to be used inside `transaction` only."""
        return self._session

    def _note_flush(self, _session: Session, _context: object) -> None:
        self._flushed = True

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """The session, for one thread at a time; commits at the end, undoes everything on an exception.

        A transaction inside another one of the same thread is part of it.
        """
        with self._lock:
            self._depth += 1
            try:
                yield self._session
            except BaseException:
                if self._depth == 1:
                    self._undo()
                raise
            else:
                if self._depth == 1:
                    self._commit()
            finally:
                self._depth -= 1

    def _commit(self) -> None:
        try:
            self._session.commit()
        except BaseException:
            self._session.rollback()
            raise
        finally:
            self._flushed = False

    def _undo(self) -> None:
        session = self._session
        # A rollback makes every row in memory stale; a request that only read (404, 409, ...) need not pay for that.
        if self._flushed or session.new or session.dirty or session.deleted:
            session.rollback()
        else:
            session.commit()
        self._flushed = False

    def close(self) -> None:
        with self._lock:
            self._session.close()
            self._engine.dispose()


def _set_pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=10000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
