"""What a move remembers: the recipe's memory, written to the journal with every step.

A conductor that takes a move over knows only this and what it finds.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from causeway.clients.port_requests import PortRequest
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.instance import ActionEvent
from causeway.model.outcomes import DiskOffer, GuestOutcome, OfferedDisk, Snapshot
from causeway.model.states import RESIZE_TASKS, TaskState, VmState
from causeway.model.warm import WarmCopy
from causeway.sagas.memory import Given
from causeway.scheduler.request import RequestedGroup, Selection
from causeway.virt.driver import MEMORY
from causeway.virt.live import LiveSource, LiveTarget

# The format of a move's memory. It rises by 1 when an older release would misread it. A new field needs no new version if its
# default means what was true before; older releases leave it out when they write.
# 2: servers that keep their state, which older releases would set to their guest's; and guests that stay until a time.
# 3: suspended servers, whose guests older releases would wake. 4: servers whose firmware or TPM has state, which older releases
# would not move. Only memories of such servers have these versions; all others have the one that older releases know.
OLDEST_MEMORY_VERSION, _KEEPS_STATE, _IS_SUSPENDED, MEMORY_VERSION = 1, 2, 3, 4


@dataclass
class AttachmentPair:
    """The attachments of one volume during a move: at most one of them is connected at a time."""

    volume_id: str
    source: str | None = None
    target: str | None = None


@dataclass
class MoveMemory:
    """Where from, where to, and what was made on the way."""

    migration_type: str
    source_cell: str
    source_host: str
    # uuid of the compute node, its name, and the zone the server was in
    source_node: str
    source_hypervisor: str | None
    source_zone: str | None
    old_flavor: Flavor
    new_flavor: Flavor
    old_vm_state: VmState
    cross_cell_allowed: Given[bool] = False
    # The guest's memory moves too, so it does not boot. Such a move only goes to other cells.
    keeps_memory: Given[bool] = False
    # The guest may go live, if its hosts reach one another.
    may_go_live: Given[bool] = True
    live_source: LiveSource | None = None
    # If it goes live: the target as the volume service must know it, what the target prepared, and the volumes there.
    connector: dict[str, object] = field(default_factory=dict)
    live_target: LiveTarget | None = None
    live_devices: list[BlockDevice] = field(default_factory=list)
    # Neither hypervisor has the guest.
    is_lost: bool = False
    # The server's mapping names the target's cell.
    is_switched: bool = False
    requested_host: Given[str | None] = None
    # The server is in ERROR, but its guest runs.
    runs_in_error: Given[bool] = False
    has_ports: Given[bool] = True
    # Some of its ports need a PCI device.
    has_port_devices: Given[bool] = True
    # The source's hypervisor can migrate a server to the host that it is on.
    migrates_to_same_host: Given[bool] = False

    # The server's group, if its policy must be checked (see `causeway.parts.groups`).
    group: RequestedGroup | None = None
    selection: Selection | None = None
    alternates: list[Selection] = field(default_factory=list)
    # Hosts that were chosen before and refused. There may be bindings for them.
    bound_hosts: list[str] = field(default_factory=list)
    # The resources that ports ask for, and their providers at the source (port -> "allocation" of its binding profile).
    port_requests: list[PortRequest] = field(default_factory=list)
    port_allocations: dict[str, str | dict[str, str]] = field(default_factory=dict)
    port_ids: list[str] = field(default_factory=list)
    attachments: list[AttachmentPair] = field(default_factory=list)
    volume_backed: bool = False
    # The state of the guest's firmware and TPM moves too.
    carries_firmware: bool = False
    # The server went back to a fenced host: its disks are there, and no guest.
    source_is_dead: bool = False
    image_id: str | None = None
    # How often the temporary images were replaced by new ones (see `causeway.moves.steps.images`).
    image_round: int = 0
    snapshot: Snapshot | None = None
    # Ephemeral disks and swap as they were before, for a revert; the images and snapshots of the ephemeral disks, by name.
    local_devices: list[BlockDevice] = field(default_factory=list)
    disk_image_ids: dict[str, str] = field(default_factory=dict)
    disks: dict[str, Snapshot] = field(default_factory=dict)
    # What the source offers to the target: inside a cell, and where hosts of two cells reach one another.
    offer: DiskOffer | None = None
    # How far the disks were copied while the guest ran; None if they are not copied then.
    warm: WarmCopy | None = None
    # The guest stays at its source until then (UTC). Its disks are copied before, and their changes now and then.
    held_until: Given[datetime | None] = None
    guest: GuestOutcome | None = None
    # Events of the server's action, in moves that an older version began. Now the rows of the steps have them.
    events: Given[list[ActionEvent]] = field(default_factory=list)

    def as_requested(self) -> MoveMemory:
        """The memory as it was when the move was requested, for another try.

        It keeps the events, which are part of the same history.
        """
        made_on_the_way: dict[str, Any] = {
            "group": None,
            "selection": None,
            "alternates": [],
            "bound_hosts": [],
            "port_requests": [],
            "port_allocations": {},
            "port_ids": [],
            "attachments": [],
            "volume_backed": False,
            "carries_firmware": False,
            "image_id": None,
            "snapshot": None,
            "local_devices": [],
            "image_round": 0,
            "disk_image_ids": {},
            "disks": {},
            "offer": None,
            "warm": None,
            "guest": None,
            "live_source": None,
            "connector": {},
            "live_target": None,
            "live_devices": [],
        }
        return dataclasses.replace(self, **made_on_the_way)

    @property
    def destination(self) -> Selection:
        if self.selection is None:
            raise RuntimeError("the move has no destination yet")
        return self.selection

    @property
    def target_cell(self) -> str:
        return self.destination.cell_uuid

    @property
    def dest_host(self) -> str:
        return self.destination.host

    @property
    def is_cross_cell(self) -> bool:
        return self.selection is not None and self.selection.cell_uuid != self.source_cell

    @property
    def is_same_host(self) -> bool:
        return self.selection is not None and self.selection.host == self.source_host

    @property
    def bytes_of_disks(self) -> int | None:
        """Bytes of disks that went from host to host, through the image service or directly; None if no disk did."""
        sizes = [sent.shown for name, sent in self.disks.items() if name != MEMORY]
        sizes += [self.snapshot.shown] if self.snapshot is not None else []
        sizes += [disk.shown for disk in self._offered if disk.name != MEMORY]
        return sum(sizes) if sizes else None

    @property
    def bytes_of_memory(self) -> int | None:
        """Bytes of the guest's memory that went from host to host; None if the guest boots."""
        sizes = [disk.shown for disk in self._offered if disk.name == MEMORY]
        sizes += [self.disks[MEMORY].shown] if MEMORY in self.disks else []
        return sum(sizes) if sizes else None

    @property
    def _offered(self) -> list[OfferedDisk]:
        return self.offer.disks if self.offer is not None else []

    @property
    def bytes_handed_over(self) -> int | None:
        """Bytes that went from host to host while the guest was off or stood still."""
        sizes = [size for size in (self.bytes_of_disks, self.bytes_of_memory) if size is not None]
        return sum(sizes) if sizes else None

    @property
    def received_round(self) -> int | None:
        """The last round of the disks that the target has; None if the disks travel whole."""
        return self.warm.received if self.warm is not None else None

    @property
    def tasks(self) -> frozenset[TaskState]:
        """The tasks that the server may have while it moves."""
        return frozenset({TaskState.MIGRATING}) if self.keeps_memory else RESIZE_TASKS

    @property
    def is_confirmed_later(self) -> bool:
        """Whether the server waits for confirm or revert when it has moved."""
        return not self.keeps_memory

    @property
    def was_running(self) -> bool:
        return self.old_vm_state is VmState.ACTIVE or (self.old_vm_state is VmState.ERROR and self.runs_in_error)

    @property
    def kept_state(self) -> VmState | None:
        """The server's state after the move, whatever its guest does; None if the guest decides."""
        return self.old_vm_state if self.old_vm_state in (VmState.ERROR, VmState.SUSPENDED) else None

    @property
    def is_suspended(self) -> bool:
        """Whether the guest was suspended before the move. Only its user resumes it."""
        return self.old_vm_state is VmState.SUSPENDED

    @property
    def version(self) -> int:
        """The version that this memory is written with."""
        if self.carries_firmware:
            return MEMORY_VERSION
        if self.is_suspended:
            return _IS_SUSPENDED
        is_plain = self.kept_state is None and self.held_until is None
        return OLDEST_MEMORY_VERSION if is_plain else _KEEPS_STATE

    @property
    def state_back(self) -> VmState:
        """The server's state when it is back at its source."""
        return self.kept_state or (VmState.ACTIVE if self.was_running else VmState.STOPPED)

    def pair(self, volume_id: str) -> AttachmentPair:
        """The attachments of a volume. Adds them to the memory if they are not there."""
        for pair in self.attachments:
            if pair.volume_id == volume_id:
                return pair
        self.attachments.append(AttachmentPair(volume_id))
        return self.attachments[-1]
