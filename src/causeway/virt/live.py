"""What hypervisors report and get in a live migration: a guest goes to another host without stopping.

The order of things: the target's driver makes ready what is to receive the guest (`Driver.prepare_live_target`), the source's has
the guest go there (`Driver.live_migrate`). Whatever a call answers, **who owns the guest is what the two hypervisors show**
(`Driver.presence`): a caller's error proves nothing, and no code resumes a guest that is paused for a migration.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Presence(StrEnum):
    """What one hypervisor shows of a guest."""

    ABSENT = "absent"
    RUNNING = "running"
    #: by its user, or for another reason that has nothing to do with a migration
    PAUSED = "paused"
    #: it is only coming in: its memory is not all here
    INCOMING = "incoming"
    #: it stood still to be handed over; only the other side shows who may resume it
    PAUSED_FOR_MIGRATION = "paused for migration"
    #: known, and not running
    OFF = "off"
    CRASHED = "crashed"

    @property
    def is_alive(self) -> bool:
        """Whether the guest's memory is here, and here alone."""
        return self in (Presence.RUNNING, Presence.PAUSED)


@dataclass
class LiveDisk:
    """A local disk of a guest that the target makes room for. ``size``: bytes that the guest sees of it."""

    name: str
    size: int
    base_image_id: str | None = None


@dataclass
class LiveSource:
    """What the target must know of a guest before it can receive it."""

    hypervisor_type: str
    hypervisor_version: int
    disks: list[LiveDisk] = field(default_factory=list)
    #: bytes of the host's disks that the guest's take: what is to travel, or to be kept free
    disk_bytes: int = 0
    #: whether that much room is enough, or what the guest may come to use of its disks must be there; None: nobody said
    disk_over_commit: bool | None = None
    #: the driver's own: model of the CPU, machine type
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class LiveTarget:
    """Where a guest is to go: what the target made ready, as the source's hypervisor needs it."""

    #: the target's address between hypervisors
    address: str
    #: the driver's own: paths, bridges, connection of its control channel
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class LiveOptions:
    """How a live migration is to be done. ``bandwidth``: MiB/s, 0: no limit."""

    bandwidth: int = 0
    post_copy: bool = False
    auto_converge: bool = False
    tls: bool = False
    #: whether local disks are copied along; None: as the guest's disks are
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
    #: the guest runs at its target, and what is left of its memory comes after it
    post_copy: bool = False
    #: it does nothing until it has arrived
    stands_still: bool = False

    def bytes_of(self) -> dict[str, int]:
        """The counters by their names."""
        return {name: value for name, value in asdict(self).items() if name not in ("post_copy", "stands_still")}
