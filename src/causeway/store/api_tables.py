"""Schema of the API database, which has the records of the whole cloud."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from causeway.store.columns import Bounded, LongText, Name, Time, Uuid, keep_all_of_unicode


class ApiBase(DeclarativeBase):
    """Base of the tables of the API database."""

    type_annotation_map = {dict[str, Any]: sa.JSON, list[Any]: sa.JSON, datetime: Time}


class CellMappings(ApiBase):
    __tablename__ = "cell_mappings"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(Uuid, unique=True)
    name: Mapped[str] = mapped_column(Name, unique=True)
    transport_url: Mapped[str] = mapped_column(sa.Text)
    database_connection: Mapped[str] = mapped_column(sa.Text)
    disabled: Mapped[bool] = mapped_column(default=False)


class HostMappings(ApiBase):
    __tablename__ = "host_mappings"
    # The databases of cells can't see that a host of one cell reports the node of a host of another.
    __table_args__ = (sa.Index("host_mappings_node", "node_uuid", unique=True),)

    host: Mapped[str] = mapped_column(Name, primary_key=True)
    cell_uuid: Mapped[str] = mapped_column(Uuid, index=True)
    node_uuid: Mapped[str | None] = mapped_column(Uuid)


class InstanceMappings(ApiBase):
    """The authority: where a server lives. ``cell_uuid`` is null until it was scheduled.

    Lists of servers are made of it, see `causeway.store.mapped_pages`. It has copies of the server's columns
    created_at, project_id and user_id.
    """

    __tablename__ = "instance_mappings"
    __table_args__ = (
        sa.Index("instance_mappings_of_project", "project_id", "deleted", "created_at", "instance_uuid"),
        sa.Index("instance_mappings_of_all", "deleted", "created_at", "instance_uuid"),
        sa.Index("instance_mappings_cells", "project_id", "cell_uuid"),
        sa.Index("instance_mappings_going", "queued_for_delete", "deleted"),
    )

    instance_uuid: Mapped[str] = mapped_column(Uuid, primary_key=True)
    cell_uuid: Mapped[str | None] = mapped_column(Uuid, index=True)
    project_id: Mapped[str] = mapped_column(Name, index=True)
    user_id: Mapped[str] = mapped_column(Name)
    queued_for_delete: Mapped[bool] = mapped_column(default=False)
    # True only if the server's row is deleted, and may be set later. Null if an audit of 0.1.0 died when it corrected the row.
    deleted: Mapped[bool | None]
    created_at: Mapped[datetime]


class RequestSpecs(ApiBase):
    __tablename__ = "request_specs"

    instance_uuid: Mapped[str] = mapped_column(Uuid, primary_key=True)
    spec: Mapped[dict[str, Any]]


class BuildRequests(ApiBase):
    """A server that has no cell yet, with everything that is needed to build it."""

    __tablename__ = "build_requests"

    instance_uuid: Mapped[str] = mapped_column(Uuid, primary_key=True)
    project_id: Mapped[str] = mapped_column(Name, index=True)
    created_at: Mapped[datetime]
    instance: Mapped[dict[str, Any]]
    block_devices: Mapped[list[Any]]
    requested_networks: Mapped[list[Any]]


class Flavors(ApiBase):
    __tablename__ = "flavors"

    id: Mapped[int] = mapped_column(primary_key=True)
    flavorid: Mapped[str] = mapped_column(Name, unique=True)
    name: Mapped[str] = mapped_column(Name, unique=True)
    vcpus: Mapped[int]
    memory_mb: Mapped[int]
    root_gb: Mapped[int]
    ephemeral_gb: Mapped[int]
    swap: Mapped[int]
    rxtx_factor: Mapped[float]
    is_public: Mapped[bool]
    disabled: Mapped[bool]
    description: Mapped[str | None] = mapped_column(LongText)
    extra_specs: Mapped[dict[str, Any]]
    created_at: Mapped[datetime | None]
    updated_at: Mapped[datetime | None]


class FlavorProjects(ApiBase):
    """Projects that may use a private flavor."""

    __tablename__ = "flavor_projects"

    flavor_id: Mapped[int] = mapped_column(sa.ForeignKey("flavors.id", ondelete="CASCADE"), primary_key=True)
    project_id: Mapped[str] = mapped_column(Name, primary_key=True)


class KeyPairs(ApiBase):
    __tablename__ = "key_pairs"
    __table_args__ = (sa.UniqueConstraint("user_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(Name)
    name: Mapped[str] = mapped_column(Name)
    type: Mapped[str] = mapped_column(Bounded(16))
    public_key: Mapped[str] = mapped_column(LongText)
    fingerprint: Mapped[str] = mapped_column(Name)
    created_at: Mapped[datetime]


class Aggregates(ApiBase):
    __tablename__ = "aggregates"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(Uuid, unique=True)
    name: Mapped[str] = mapped_column(Name, unique=True)
    # the attribute "metadata" is taken by the declarative base
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata")
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime | None]


class AggregateHosts(ApiBase):
    __tablename__ = "aggregate_hosts"

    aggregate_id: Mapped[int] = mapped_column(sa.ForeignKey("aggregates.id", ondelete="CASCADE"), primary_key=True)
    host: Mapped[str] = mapped_column(Name, primary_key=True)


class InstanceGroups(ApiBase):
    __tablename__ = "instance_groups"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(Uuid, unique=True)
    name: Mapped[str] = mapped_column(Name)
    project_id: Mapped[str] = mapped_column(Name, index=True)
    user_id: Mapped[str] = mapped_column(Name)
    policy: Mapped[str] = mapped_column(Bounded(64))
    rules: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class InstanceGroupMembers(ApiBase):
    __tablename__ = "instance_group_member"

    group_id: Mapped[int] = mapped_column(sa.ForeignKey("instance_groups.id", ondelete="CASCADE"), primary_key=True)
    instance_uuid: Mapped[str] = mapped_column(Uuid, primary_key=True, index=True)


class InstanceGroupClaims(ApiBase):
    """Claims of members of groups on hosts: see `causeway.store.api.group_claims`."""

    __tablename__ = "instance_group_claims"

    id: Mapped[int] = mapped_column(primary_key=True)
    group_id: Mapped[int] = mapped_column(sa.ForeignKey("instance_groups.id", ondelete="CASCADE"), index=True)
    instance_uuid: Mapped[str] = mapped_column(Uuid, unique=True)
    host: Mapped[str] = mapped_column(Name)
    created_at: Mapped[datetime]


class Quotas(ApiBase):
    """Limits of a project, of a user in a project (``user_id`` not empty), or of a class (``class:`` + name)."""

    __tablename__ = "quotas"

    project_id: Mapped[str] = mapped_column(Name, primary_key=True)
    user_id: Mapped[str] = mapped_column(Name, primary_key=True, default="")
    resource: Mapped[str] = mapped_column(Bounded(64), primary_key=True)
    hard_limit: Mapped[int]


class AcceptedTotals(ApiBase):
    """What was accepted of an owner of limits, a project or a user: see `causeway.store.api.accepted`."""

    __tablename__ = "accepted_totals"

    owner: Mapped[str] = mapped_column(Bounded(264), primary_key=True)
    version: Mapped[int]
    amounts: Mapped[dict[str, Any]]


class Migrations(ApiBase):
    """One row per move for its whole life, whichever cells hold the server."""

    __tablename__ = "migrations"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(Uuid, unique=True)
    instance_uuid: Mapped[str] = mapped_column(Uuid, index=True)
    migration_type: Mapped[str] = mapped_column(Bounded(32))
    status: Mapped[str] = mapped_column(Bounded(32))
    source_compute: Mapped[str | None] = mapped_column(Name)
    source_node: Mapped[str | None] = mapped_column(Name)
    source_cell: Mapped[str | None] = mapped_column(Uuid)
    dest_compute: Mapped[str | None] = mapped_column(Name)
    dest_node: Mapped[str | None] = mapped_column(Name)
    dest_host: Mapped[str | None] = mapped_column(Name)
    dest_cell: Mapped[str | None] = mapped_column(Uuid)
    old_flavor_id: Mapped[int]
    new_flavor_id: Mapped[int]
    cross_cell_move: Mapped[bool]
    hidden: Mapped[bool]
    user_id: Mapped[str | None] = mapped_column(Name)
    project_id: Mapped[str | None] = mapped_column(Name, index=True)
    disk_total_bytes: Mapped[int | None] = mapped_column(sa.BigInteger)
    disk_processed_bytes: Mapped[int | None] = mapped_column(sa.BigInteger)
    disk_remaining_bytes: Mapped[int | None] = mapped_column(sa.BigInteger)
    memory_total_bytes: Mapped[int | None] = mapped_column(sa.BigInteger)
    memory_processed_bytes: Mapped[int | None] = mapped_column(sa.BigInteger)
    memory_remaining_bytes: Mapped[int | None] = mapped_column(sa.BigInteger)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime | None]


class Operations(ApiBase):
    """The journal: one run of a recipe for a server."""

    # The name that release 0.1.0 knows, which reads and writes it beside this one (docs/architecture/records.md).
    __tablename__ = "moves"

    id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    migration_uuid: Mapped[str] = mapped_column(Uuid, index=True)
    instance_uuid: Mapped[str] = mapped_column(Uuid, index=True)
    recipe: Mapped[str] = mapped_column(Bounded(64))
    state: Mapped[str] = mapped_column(Bounded(16), index=True)
    epoch: Mapped[int]
    owner: Mapped[str | None] = mapped_column(Name)
    lease_until: Mapped[datetime | None]
    pivoted: Mapped[bool]
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    data: Mapped[dict[str, Any]]
    # Why this destination: see `causeway.scheduler.explain`. Written once, not with every step.
    explanation: Mapped[dict[str, Any] | None]
    request_id: Mapped[str | None] = mapped_column(Bounded(64))
    user_id: Mapped[str | None] = mapped_column(Name)
    project_id: Mapped[str | None] = mapped_column(Name)
    reason: Mapped[str | None] = mapped_column(Name)
    error: Mapped[dict[str, Any] | None]
    started_at: Mapped[datetime]
    # Listings ask for the moves that ended just now.
    ended_at: Mapped[datetime | None] = mapped_column(index=True)
    recipe_version: Mapped[int | None]
    memory_version: Mapped[int | None]
    parked: Mapped[str | None] = mapped_column(Name)
    failing_since: Mapped[datetime | None]
    # The requester, and the requester's token, encrypted (`causeway.requests.requesters`). Null when the operation has ended.
    requester: Mapped[dict[str, Any] | None]
    sealed_token: Mapped[str | None] = mapped_column(LongText)
    # Each step's do or undo with all its attempts, written before it acts and completed afterwards. ``step``: the name of the
    # last one. ``hosts``: as "|one|another|". (Databases of 0.1.0 also have the table `move_steps`, which nobody writes to. Its
    # processes read it, so only a revision after 0.2.0 may delete it and its shadow table.)
    steps: Mapped[list[Any] | None]
    step: Mapped[str | None] = mapped_column(Bounded(64))
    hosts: Mapped[str | None] = mapped_column(LongText)
    # The attempt under way, for `ReportedProgress`; null if no bytes may be reported.
    at_hand: Mapped[str | None] = mapped_column(Bounded(64))
    # Bytes that the ended steps have sent.
    sent: Mapped[int | None] = mapped_column(sa.BigInteger)


class ReportedProgress(ApiBase):
    """The last reported progress of a move's transfer. It is valid while ``at_hand`` is equal to the move's."""

    __tablename__ = "move_progress"

    move_id: Mapped[str] = mapped_column(Uuid, sa.ForeignKey("moves.id", ondelete="CASCADE"), primary_key=True)
    at_hand: Mapped[str] = mapped_column(Bounded(64))
    bytes_done: Mapped[int] = mapped_column(sa.BigInteger)
    bytes_total: Mapped[int] = mapped_column(sa.BigInteger)


class HostCleanups(ApiBase):
    """Cleanups of dead hosts: see `causeway.store.api.cleanups`."""

    # The name that release 0.1.0 knows, which reads and writes it beside this one.
    __tablename__ = "host_leftovers"

    id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    host: Mapped[str] = mapped_column(Name, index=True)
    cell_uuid: Mapped[str] = mapped_column(Uuid)
    instance_uuid: Mapped[str] = mapped_column(Uuid, index=True)
    move_id: Mapped[str | None] = mapped_column(Uuid)
    what: Mapped[str] = mapped_column(Bounded(64))
    # A `causeway.model.missed.MissedOrder`.
    missed: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class Drains(ApiBase):
    """A `causeway.model.drains.Drain`: its request, its state, and the conductor that works on it."""

    __tablename__ = "drains"

    id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    # A `causeway.model.drains.DrainRequest`.
    request: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(Bounded(16), index=True)
    closed: Mapped[list[Any]]
    note: Mapped[str | None] = mapped_column(LongText)
    undo: Mapped[bool]
    # A `causeway.model.drains.Pacing`.
    pacing: Mapped[dict[str, Any] | None]
    epoch: Mapped[int]
    owner: Mapped[str | None] = mapped_column(Name)
    lease_until: Mapped[datetime | None]
    user_id: Mapped[str | None] = mapped_column(Name)
    project_id: Mapped[str | None] = mapped_column(Name)
    request_id: Mapped[str | None] = mapped_column(Bounded(64))
    created_at: Mapped[datetime] = mapped_column(index=True)
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class DrainServers(ApiBase):
    """A `causeway.model.drains.DrainServer`."""

    __tablename__ = "drain_servers"
    __table_args__ = (sa.Index("drain_servers_by_state", "drain_id", "state"),)

    drain_id: Mapped[str] = mapped_column(Uuid, sa.ForeignKey("drains.id", ondelete="CASCADE"), primary_key=True)
    instance_uuid: Mapped[str] = mapped_column(Uuid, primary_key=True, index=True)
    state: Mapped[str] = mapped_column(Bounded(16))
    name: Mapped[str] = mapped_column(Name)
    owner_project: Mapped[str] = mapped_column(Name)
    how: Mapped[str | None] = mapped_column(Bounded(16))
    # Names of cells.
    source_cell: Mapped[str] = mapped_column(Name)
    source_host: Mapped[str] = mapped_column(Name)
    target_cell: Mapped[str | None] = mapped_column(Name)
    target_host: Mapped[str | None] = mapped_column(Name)
    flavor: Mapped[str | None] = mapped_column(Name)
    new_flavor: Mapped[str | None] = mapped_column(Name)
    bytes: Mapped[int] = mapped_column(sa.BigInteger)
    memory_mb: Mapped[int]
    seconds: Mapped[float | None]
    pause: Mapped[float | None]
    took: Mapped[float | None]
    stood_still: Mapped[float | None]
    why: Mapped[str | None] = mapped_column(LongText)
    help: Mapped[str | None] = mapped_column(LongText)
    request_id: Mapped[str | None] = mapped_column(Bounded(64))
    attempts: Mapped[int]
    not_before: Mapped[datetime | None]
    began_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class ConsoleAuthTokens(ApiBase):
    """A `causeway.model.console.ConsoleToken`. ``expires_at``: by the database's clock."""

    __tablename__ = "console_auth_tokens"

    # SHA-256, in hexadecimal, so that a reader of the database can't open a console.
    token_hash: Mapped[str] = mapped_column(Bounded(64), primary_key=True)
    console_type: Mapped[str] = mapped_column(Bounded(16))
    instance_uuid: Mapped[str] = mapped_column(Uuid, index=True)
    cell_uuid: Mapped[str] = mapped_column(Uuid)
    compute_host: Mapped[str] = mapped_column(Name)
    # Where the console listened when the token was given.
    host: Mapped[str] = mapped_column(Name)
    port: Mapped[int]
    access_url_base: Mapped[str] = mapped_column(sa.Text)
    expires_at: Mapped[datetime] = mapped_column(index=True)


class Adoptions(ApiBase):
    """What was imported from Nova: see `causeway.store.api.adoptions`."""

    __tablename__ = "adoptions"

    kind: Mapped[str] = mapped_column(Bounded(32), primary_key=True)
    key: Mapped[str] = mapped_column(Bounded(255), primary_key=True)
    # Nova's number of its row.
    nova_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    # Where its records are; null: in this database.
    cell_uuid: Mapped[str | None] = mapped_column(Uuid)
    # SHA-256 of what was imported, in hexadecimal.
    digest: Mapped[str] = mapped_column(Bounded(64))
    imported_at: Mapped[datetime]


class AdoptedHosts(ApiBase):
    """A `causeway.model.adoption.AdoptedHost`."""

    __tablename__ = "adopted_hosts"

    host: Mapped[str] = mapped_column(Name, primary_key=True)
    cell_uuid: Mapped[str] = mapped_column(Uuid, index=True)
    state: Mapped[str] = mapped_column(Bounded(16))
    findings: Mapped[list[Any]]
    updated_at: Mapped[datetime]


keep_all_of_unicode(ApiBase.metadata)
