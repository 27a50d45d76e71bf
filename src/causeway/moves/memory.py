"""The memory of a move, which is written to the journal with every step.

A conductor that takes a move over knows only this memory, and what it finds in the cells and services.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from causeway.clients.port_requests import PortRequest
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.instance import ActionEvent
from causeway.model.network import Plugging
from causeway.model.outcomes import DiskOffer, GuestOutcome, OfferedDisk, Snapshot
from causeway.model.shared_disk import SharedDisk
from causeway.model.states import RESIZE_TASKS, TaskState, VmState
from causeway.model.warm import WarmCopy
from causeway.sagas.memory import Given, known_at_start, made_of
from causeway.scheduler.request import RequestedGroup, Selection
from causeway.virt.driver import MEMORY
from causeway.virt.live_guest import LiveSource, LiveTarget

# The version of the memory's format, and the oldest one that this release reads. The version rises by 1 when the release before
# would misread a memory. A new field needs no new version if its default describes how moves were without the field; releases
# that do not know a field leave it out when they write. Release 0.1.0 wrote versions 1 to 4, which all have this format.
OLDEST_MEMORY_VERSION, MEMORY_VERSION = 1, 4


@dataclass
class AttachmentPair:
    """The attachments of one volume during a move. Only a live migration has both of them connected for a while."""

    volume_id: str
    source: str | None = None
    target: str | None = None


@dataclass
class MoveMemory:
    """Where a server comes from and goes to, and what its move has made so far."""

    migration_type: str
    source_cell: str
    source_host: str
    # The uuid of the source's compute node, the node's name, and the server's zone before the move.
    source_node: str
    source_hypervisor: str | None
    source_zone: str | None
    old_flavor: Flavor
    new_flavor: Flavor
    old_vm_state: VmState
    cross_cell_allowed: Given[bool] = False
    # The guest's memory moves too, so the guest does not boot. Only moves to other cells can do this.
    keeps_memory: Given[bool] = False
    # The guest goes live if its hosts reach one another.
    may_go_live: Given[bool] = True
    live_source: LiveSource | None = None
    # For a live migration: as asked for (``disk_over_commit``: as `LiveSource` has it), whether a near-live migration to another
    # cell may follow if no host of the cell takes the guest, and the name of the event for choosing the target.
    forced: Given[bool] = False
    block_migration: Given[bool | None] = None
    disk_over_commit: Given[bool | None] = None
    may_leave_cell: Given[bool] = False
    event: Given[str] = "conductor_live_migrate_instance"
    # For a live migration: the target's connector for the volume service, what the target prepared, and the volumes there.
    connector: dict[str, object] = field(default_factory=dict)
    live_target: LiveTarget | None = None
    live_devices: list[BlockDevice] = field(default_factory=list)
    # True if neither hypervisor has the guest any more.
    is_lost: bool = False
    # True if the server's mapping names the target's cell.
    is_switched: bool = False
    requested_host: Given[str | None] = None
    # The server was in ERROR before the move, but its guest ran.
    runs_in_error: Given[bool] = False
    has_ports: Given[bool] = True
    # Some of its ports need a PCI device.
    has_port_devices: Given[bool] = True
    # The source's hypervisor can migrate a server to the host that it is on.
    migrates_to_same_host: Given[bool] = False

    # Where the source keeps disks that other hosts may reach (`causeway.virt.driver.shared_disks`); None: only it reaches them.
    source_storage: Given[str | None] = None
    # The disks in storage that source and target both reach, by name: they stay where they are.
    shared: dict[str, SharedDisk] = field(default_factory=dict)

    # The server's group, if its policy must be checked (see `causeway.hosts.groups`).
    group: RequestedGroup | None = None
    selection: Selection | None = None
    alternates: list[Selection] = field(default_factory=list)
    # Hosts that were chosen before and refused. Port bindings for them may exist.
    bound_hosts: list[str] = field(default_factory=list)
    # The resources that ports ask for; and port -> "allocation" of its binding profile: the resources' providers at the source.
    port_requests: list[PortRequest] = field(default_factory=list)
    port_allocations: dict[str, str | dict[str, str]] = field(default_factory=dict)
    port_ids: list[str] = field(default_factory=list)
    # For a live migration: port -> how it is plugged at the source and at the target.
    source_plugs: dict[str, Plugging] = field(default_factory=dict)
    target_plugs: dict[str, Plugging] = field(default_factory=dict)
    # Hosts that earlier tries of this migration have left because they did not plug the server's ports.
    hosts_without_network: Given[list[str]] = field(default_factory=list)
    attachments: list[AttachmentPair] = field(default_factory=list)
    volume_backed: bool = False
    # True if the state of the guest's firmware and TPM moves too.
    carries_firmware: bool = False
    # True if the server was rolled back to a fenced host, which has its disks but no guest.
    source_is_dead: bool = False
    image_id: str | None = None
    # How often the move has replaced its temporary images by new ones (see `causeway.moves.steps.images`).
    image_round: int = 0
    snapshot: Snapshot | None = None
    # The ephemeral disks and swap before the move, for a revert; and the images and snapshots of the ephemeral disks, by name.
    local_devices: list[BlockDevice] = field(default_factory=list)
    disk_image_ids: dict[str, str] = field(default_factory=dict)
    disks: dict[str, Snapshot] = field(default_factory=dict)
    # The disks that the source offers to the target: inside a cell, or if the hosts of two cells reach one another.
    offer: DiskOffer | None = None
    # How far the disks are copied while the guest runs; None if they are not copied while it runs.
    warm: WarmCopy | None = None
    # Until then (UTC) the guest stays at its source, while its disks and from time to time their changes are copied.
    held_until: Given[datetime | None] = None
    guest: GuestOutcome | None = None
    # Events of the server's action from the moves that this one replaces.
    events: Given[list[ActionEvent]] = field(default_factory=list)

    def as_requested(self) -> MoveMemory:
        """Returns the memory as it was when the move was requested, for another try: without all that steps have written.

        The events stay, because both tries have the same history.
        """
        return MoveMemory(**{name: getattr(self, name) for name in known_at_start(MoveMemory)})

    @property
    def destination(self) -> Selection:
        if self.selection is None:
            raise RuntimeError("the move has no destination yet")
        return self.selection

    @property
    @made_of("selection")
    def target_cell(self) -> str:
        return self.destination.cell_uuid

    @property
    def target_host(self) -> str:
        return self.destination.host

    @property
    def is_cross_cell(self) -> bool:
        return self.selection is not None and self.selection.cell_uuid != self.source_cell

    @property
    def is_same_host(self) -> bool:
        return self.selection is not None and self.selection.host == self.source_host

    @property
    def bytes_of_disks(self) -> int | None:
        """How many bytes of disks went from host to host, through the image service or directly; None if no disk went."""
        sizes = [sent.shown for name, sent in self.disks.items() if name != MEMORY]
        sizes += [self.snapshot.shown] if self.snapshot is not None else []
        sizes += [disk.shown for disk in self._offered if disk.name != MEMORY]
        return sum(sizes) if sizes else None

    @property
    def bytes_of_memory(self) -> int | None:
        """How many bytes of the guest's memory went from host to host; None if the guest boots at the target."""
        sizes = [disk.shown for disk in self._offered if disk.name == MEMORY]
        sizes += [self.disks[MEMORY].shown] if MEMORY in self.disks else []
        return sum(sizes) if sizes else None

    @property
    def _offered(self) -> list[OfferedDisk]:
        return self.offer.disks if self.offer is not None else []

    @property
    def bytes_handed_over(self) -> int | None:
        """How many bytes went from host to host while the guest was off or stood still."""
        sizes = [size for size in (self.bytes_of_disks, self.bytes_of_memory) if size is not None]
        return sum(sizes) if sizes else None

    @property
    def received_round(self) -> int | None:
        """The number of the last round of the disks that the target has received; None if the whole disks must travel."""
        return self.warm.received if self.warm is not None else None

    @property
    def tasks(self) -> frozenset[TaskState]:
        """The tasks that the server may have while it moves."""
        return frozenset({TaskState.MIGRATING}) if self.keeps_memory else RESIZE_TASKS

    @property
    def is_confirmed_later(self) -> bool:
        """Whether the server waits for confirm or revert after the move."""
        return not self.keeps_memory

    @property
    def was_running(self) -> bool:
        return self.old_vm_state is VmState.ACTIVE or (self.old_vm_state is VmState.ERROR and self.runs_in_error)

    @property
    def kept_state(self) -> VmState | None:
        """The server's state after the move if it does not depend on the guest; None if it follows the guest's power state."""
        return self.old_vm_state if self.old_vm_state in (VmState.ERROR, VmState.SUSPENDED) else None

    @property
    def is_suspended(self) -> bool:
        """Whether the guest was suspended before the move, so that only its user resumes it."""
        return self.old_vm_state is VmState.SUSPENDED

    @property
    def restored_state(self) -> VmState:
        """The server's state when it is restored at its source."""
        return self.kept_state or (VmState.ACTIVE if self.was_running else VmState.STOPPED)

    def pair(self, volume_id: str) -> AttachmentPair:
        """Returns the attachments of a volume. Adds an empty pair to the memory if there is none."""
        for pair in self.attachments:
            if pair.volume_id == volume_id:
                return pair
        self.attachments.append(AttachmentPair(volume_id))
        return self.attachments[-1]
