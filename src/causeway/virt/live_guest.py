"""What hypervisors are given and report in a live migration: a guest goes to another host without stopping.

First the driver of the target makes what the guest needs there (`LiveMigrationMethods.prepare_live_target`), then the driver of
the source sends the guest (`LiveMigrationMethods.live_migrate`). Whatever a call answers, **which host owns the guest is what
the two hypervisors show** (`LiveMigrationMethods.presence`): an error of a call proves nothing, and no code resumes a guest
that is paused for a migration.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from causeway.model.shared_disk import SharedDisk


class Presence(StrEnum):
    """What one hypervisor shows of a guest."""

    ABSENT = "absent"
    RUNNING = "running"
    #: by its user, or for another reason that is no migration
    PAUSED = "paused"
    #: it is arriving: not all of its memory is here
    INCOMING = "incoming"
    #: it was stopped to be handed over; only what the other host shows says which of them may resume it
    PAUSED_FOR_MIGRATION = "paused for migration"
    #: the hypervisor knows it, and it does not run
    OFF = "off"
    CRASHED = "crashed"

    @property
    def is_alive(self) -> bool:
        """Whether the guest's memory is on this host and nowhere else."""
        return self in (Presence.RUNNING, Presence.PAUSED)


@dataclass
class LiveDisk:
    """A local disk of a guest, for which the target makes an empty one unless both hosts reach the same storage.

    ``size``: bytes that the guest sees.
    """

    name: str
    size: int
    base_image_id: str | None = None
    #: it is in storage that other hosts may reach
    shared: SharedDisk | None = None


@dataclass
class LiveSource:
    """What the target must know of a guest before it can receive it."""

    hypervisor_type: str
    hypervisor_version: int
    disks: list[LiveDisk] = field(default_factory=list)
    #: bytes that the guest's disks occupy at the source, and need at the target
    disk_bytes: int = 0
    #: True: that much room is enough. False: there must be room for all that the disks may grow to. None: not said
    disk_over_commit: bool | None = None
    #: whether the request asks for the disks to be copied; None: if they must be
    block_migration: bool | None = None
    #: for the driver only: CPU model, machine type
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def shared(self) -> dict[str, SharedDisk]:
        """The disks in storage that other hosts may reach, by name; none unless all of the guest's disks are there."""
        found = {disk.name: disk.shared for disk in self.disks if disk.shared is not None}
        return found if len(found) == len(self.disks) else {}


@dataclass
class LiveTarget:
    """Where a guest goes: what the target made, as the hypervisor of the source needs it."""

    #: the address at which other hypervisors reach the target
    address: str
    #: for the driver only: paths, bridges, the URI of the hypervisor
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class LiveOptions:
    """How to do a live migration. ``bandwidth``: MiB per second, 0: no limit."""

    bandwidth: int = 0
    post_copy: bool = False
    auto_converge: bool = False
    tls: bool = False
    #: whether local disks are copied too; None: if the guest has any
    block_migration: bool | None = None


@dataclass
class LiveProgress:
    """How far a live migration has come, in bytes."""

    memory_total: int = 0
    memory_processed: int = 0
    memory_remaining: int = 0
    disk_total: int = 0
    disk_processed: int = 0
    disk_remaining: int = 0
    #: the guest runs at the target, and the rest of its memory follows
    post_copy: bool = False
    #: the guest does not run until it has arrived
    stands_still: bool = False

    def bytes_of(self) -> dict[str, int]:
        """name -> bytes, of each counter."""
        return {name: value for name, value in asdict(self).items() if name not in ("post_copy", "stands_still")}
