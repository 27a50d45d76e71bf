"""What was read of a cloud, and what follows from it without further requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property
from typing import Any

import msgspec
from oslo_utils import uuidutils

from causeway.clients.network import PortBinding
from causeway.clients.placement.types import Allocations
from causeway.clients.volume import Attachment, Volume
from causeway.model.audit import HostContents
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.drains import Drain, DrainServer
from causeway.model.flavor import Flavor
from causeway.model.host import CellMapping
from causeway.model.image import ImageMeta
from causeway.model.instance import MigrationContext
from causeway.model.migration import Migration
from causeway.model.numa import InstanceNUMATopology
from causeway.model.operations import LIVE_MIGRATION, Operation, present_name
from causeway.model.pci import PciDevice
from causeway.model.sagas import ENDED
from causeway.model.shared_disk import StoredDisk
from causeway.model.states import MIGRATION_ENDED, MigrationStatus, PowerState, TaskState, VmState
from causeway.moves.live_of_0_1_0 import hosts_of, is_of_0_1_0
from causeway.moves.memory import MoveMemory
from causeway.moves.recipes import WITH_GUEST
from causeway.store.api.mappings import InstanceMapping


@dataclass
class Record:
    """What one cell's database says of a server that is not deleted."""

    uuid: str
    cell_uuid: str
    project_id: str
    user_id: str
    host: str | None
    vm_state: VmState
    task_state: TaskState | None
    power_state: PowerState
    flavor: Flavor
    old_vm_state: VmState | None = None
    hidden: bool = False
    port_ids: list[str] = field(default_factory=list)
    created_at: datetime | None = None
    updated_at: datetime | None = None
    block_devices: list[BlockDevice] = field(default_factory=list)
    image_meta: ImageMeta | None = None
    # What its host holds for it, and what the other end of its move holds.
    numa_topology: InstanceNUMATopology | None = None
    pci_devices: list[PciDevice] = field(default_factory=list)
    migration_context: MigrationContext | None = None
    # The image of a shelved server.
    shelved_image_id: str | None = None

    @property
    def is_volume_backed(self) -> bool:
        return is_volume_backed(self.block_devices)

    @property
    def attachment_ids(self) -> set[str]:
        return {device.attachment_id for device in self.block_devices if device.attachment_id is not None}


@dataclass
class OpenEvent:
    """An event of a server's action that has not ended."""

    cell_uuid: str
    event_id: int
    server: str
    action: str
    event: str
    started: datetime
    host: str | None = None


@dataclass
class Movement:
    """A server's move that explains what is found: it is under way, or waits for confirm or revert."""

    migration: Migration | None
    active: Operation | None
    # Those of all sagas for this migration, the resize's first.
    memories: list[MoveMemory]

    @property
    def under_way(self) -> bool:
        return self.active is not None

    @property
    def memory(self) -> MoveMemory:
        """The memory of the resize."""
        return self.memories[0]

    @property
    def source_host(self) -> str:
        return self.memory.source_host

    @property
    def hosts(self) -> set[str]:
        """The hosts that may hold something of the server for this move."""
        found = {memory.source_host for memory in self.memories}
        found |= {memory.selection.host for memory in self.memories if memory.selection is not None}
        if self.under_way:
            for memory in self.memories:
                found.update(memory.bound_hosts, (other.host for other in memory.alternates))
                if memory.requested_host is not None:
                    found.add(memory.requested_host)
        return found

    @property
    def cells(self) -> set[str]:
        """The cells that may hold records of the server for this move."""
        found = {memory.source_cell for memory in self.memories}
        return found | {memory.selection.cell_uuid for memory in self.memories if memory.selection is not None}

    @property
    def attachment_ids(self) -> set[str]:
        pairs = [pair for memory in self.memories for pair in memory.attachments]
        return {found for pair in pairs for found in (pair.source, pair.target) if found is not None}


class ServerStanding(Enum):
    """Whether a uuid is that of a server."""

    LIVE = "live"  # it has a record in a cell, or is about to be built
    DELETED = "deleted"  # it was a server of this cloud
    UNKNOWN = "unknown"  # this cloud does not know it
    UNSEEN = "unseen"  # its cell could not be asked


@dataclass
class HostState:
    name: str
    cell_uuid: str
    # None: it has never reported what it has
    node_uuid: str | None
    # None: it is down, or did not answer
    contents: HostContents | None = None


@dataclass
class Impostor:
    """A host that reports what is another host's: the node of ``owner`` (None if unknown), or the name of a host elsewhere."""

    name: str
    cell_uuid: str
    node_uuid: str
    owner: str | None


@dataclass(frozen=True)
class Storage:
    """Storage that hosts share. ``asked``: the host that has listed its disks."""

    asked: str
    disks: list[StoredDisk]

    def by_server(self) -> dict[str, list[StoredDisk]]:
        found: dict[str, list[StoredDisk]] = {}
        for disk in self.disks:
            uuid, separator, _name = disk.name.partition("_")
            if separator and uuidutils.is_uuid_like(uuid):
                found.setdefault(uuid, []).append(disk)
        return found


@dataclass
class Snapshot:
    """What was read of a cloud at one time. What could not be read is None, and named in ``unreached``."""

    taken_at: datetime
    # Seconds after which any work that is not in the journal must have ended.
    stale_after: float
    cells: dict[str, CellMapping] = field(default_factory=dict)
    down_cells: set[str] = field(default_factory=set)
    mappings: dict[str, InstanceMapping] = field(default_factory=dict)
    records: dict[str, list[Record]] = field(default_factory=dict)
    # Those of the uuids in other services that were servers once.
    deleted: set[str] = field(default_factory=set)
    build_requests: set[str] = field(default_factory=set)
    # Migrations that have not ended, and those that something refers to.
    migrations: dict[str, Migration] = field(default_factory=dict)
    # Moves of migrations that have not ended, and all that have not ended themselves; oldest first.
    operations: list[Operation] = field(default_factory=list)
    open_events: list[OpenEvent] = field(default_factory=list)
    # id -> drain, of those that have not ended, closed a host, or have one of the servers in ``drained``.
    drains: dict[str, Drain] = field(default_factory=dict)
    # Their servers for which something was requested, and the requests that the journal knows.
    drained: list[DrainServer] = field(default_factory=list)
    requests_of_drains: set[str] = field(default_factory=set)
    # host -> the id of the drain that closed it
    closed_hosts: dict[str, str] = field(default_factory=dict)
    hosts: dict[str, HostState] = field(default_factory=dict)
    # storage -> the disks in it, and the host that was asked
    storages: dict[str, Storage] = field(default_factory=dict)
    impostors: list[Impostor] = field(default_factory=list)
    # provider -> root of its tree
    providers: dict[str, str] | None = None
    # consumer -> what it holds of providers in the trees of compute nodes, and of those that share with them
    allocations: dict[str, Allocations] | None = None
    # Servers on no host that Placement has as consumers without showing them.
    hidden_consumers: set[str] = field(default_factory=set)
    # port id -> port, of ports that belong to servers; and port id -> its bindings
    ports: dict[str, dict[str, Any]] | None = None
    bindings: dict[str, list[PortBinding]] = field(default_factory=dict)
    attachments: list[Attachment] | None = None
    # id -> volume
    volumes: dict[str, Volume] | None = None
    images: list[ImageMeta] | None = None
    # Servers and migrations whose records changed while the rest was read.
    changing: set[str] = field(default_factory=set)
    unreached: list[str] = field(default_factory=list)

    # servers

    def home(self, uuid: str) -> Record | None:
        """The server's record in the cell where it lives."""
        mapping = self.mappings.get(uuid)
        if mapping is None:
            return None
        return next((found for found in self.records.get(uuid, []) if found.cell_uuid == mapping.cell_uuid), None)

    @cached_property
    def homes(self) -> list[Record]:
        """The records of all servers, each in the cell where it lives."""
        return [home for uuid in self.records if (home := self.home(uuid)) is not None]

    def standing(self, uuid: str) -> ServerStanding:
        if uuid in self.records or uuid in self.build_requests:
            return ServerStanding.LIVE
        mapping = self.mappings.get(uuid)
        if mapping is not None and mapping.cell_uuid in self.down_cells:
            return ServerStanding.UNSEEN
        if uuid in self.deleted:
            return ServerStanding.DELETED
        if mapping is not None:
            return ServerStanding.DELETED if mapping.queued_for_delete else ServerStanding.LIVE
        return ServerStanding.UNSEEN if self.down_cells else ServerStanding.UNKNOWN

    def is_quiet(self, record: Record) -> bool:
        """Whether nobody works on the server, so that its record must be true. (Attaching and detaching set no task state.)"""
        return record.task_state is None and record.uuid not in self.working

    def is_at_rest(self, record: Record) -> bool:
        """Whether it is quiet and all events in its history have ended, so that its devices must be true, too."""
        return self.is_quiet(record) and record.uuid not in self._with_open_events

    def is_old(self, time: datetime | None) -> bool:
        """Whether work that began then must have ended; True for None."""
        return time is None or self.taken_at - time > timedelta(seconds=self.stale_after)

    @cached_property
    def working(self) -> set[str]:
        """The servers on which an operation of the journal works, or is about to."""
        return {operation.instance_uuid for operation in self.operations if operation.state not in ENDED}

    @cached_property
    def _with_open_events(self) -> set[str]:
        return {event.server for event in self.open_events}

    # moves

    @cached_property
    def _movements(self) -> dict[str, Movement]:
        found: dict[str, Movement] = {}
        by_migration: dict[str, list[Operation]] = {}
        for operation in self.operations:
            if present_name(operation.recipe) not in WITH_GUEST or is_of_0_1_0(operation):
                continue
            by_migration.setdefault(operation.migration_uuid, []).append(operation)
        for migration_uuid, moves in by_migration.items():
            migration = self.migrations.get(migration_uuid)
            active = next((operation for operation in moves if operation.state not in ENDED), None)
            waits = migration is not None and migration.status not in MIGRATION_ENDED
            if active is None and not waits:
                continue
            uuid = moves[0].instance_uuid
            if uuid in found and found[uuid].under_way:
                continue
            found[uuid] = Movement(
                migration, active, [msgspec.convert(operation.data, MoveMemory) for operation in moves]
            )
        return found

    @cached_property
    def live(self) -> dict[str, set[str]]:
        """Servers whose guests are migrated while they run -> the hosts that may have something of them for that."""
        found: dict[str, set[str]] = {}
        for operation in self.operations:
            if present_name(operation.recipe) != LIVE_MIGRATION or operation.state in ENDED:
                continue
            if is_of_0_1_0(operation):
                found[operation.instance_uuid] = hosts_of(operation)
            elif (movement := self.movement(operation.instance_uuid)) is not None:
                found[operation.instance_uuid] = movement.hosts
        return found

    def movement(self, uuid: str) -> Movement | None:
        """The server's move that is under way, or waits for confirm or revert."""
        return self._movements.get(uuid)

    def waiting(self, uuid: str) -> Movement | None:
        """The server's move that waits for confirm or revert, while nothing works on it."""
        movement = self.movement(uuid)
        if movement is None or movement.under_way or movement.migration is None:
            return None
        return movement if movement.migration.status is MigrationStatus.FINISHED else None

    def may_hold(self, uuid: str) -> set[str]:
        """The hosts that may hold something of a server: its own, and those of its move."""
        found = {record.host for record in self.records.get(uuid, []) if record.host is not None}
        home, movement = self.home(uuid), self.movement(uuid)
        if home is not None:
            found = {home.host} if home.host is not None else set()
        return found | (movement.hosts if movement is not None else set()) | self.live.get(uuid, set())

    # hosts

    def node_of(self, host: str) -> str | None:
        state = self.hosts.get(host)
        return state.node_uuid if state is not None else None

    def contents_of(self, host: str | None) -> HostContents | None:
        """What is on a host; None if that is unknown."""
        state = self.hosts.get(host) if host is not None else None
        return state.contents if state is not None else None

    @cached_property
    def nodes(self) -> set[str]:
        """The uuids of all compute nodes, which are those of their providers."""
        return {state.node_uuid for state in self.hosts.values() if state.node_uuid is not None}

    def cell_name(self, cell_uuid: str | None) -> str:
        cell = self.cells.get(cell_uuid or "")
        return cell.name if cell is not None else str(cell_uuid)
