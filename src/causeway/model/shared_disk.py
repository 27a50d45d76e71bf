"""Disks in a store that several hosts reach, as hosts describe them to one another and to the conductor."""

from __future__ import annotations

from dataclasses import dataclass, field

#: owns a disk that somebody has put aside, and that nobody uses
NOBODY = "-"
#: how the names of snapshots begin that are rounds of a guest which is being copied while it runs
ROUND = "round-"
#: in the name of a disk that arrives round by round: nobody's guest has it yet
ARRIVING = ".arriving."
_AFTER = " after "


@dataclass(frozen=True)
class SharedDisk:
    """``store``: which store keeps it (`causeway.virt.shared_disks.store`). ``name``: there. ``owner``: whose it is."""

    store: str
    name: str
    owner: str


@dataclass(frozen=True)
class Owner:
    """Who may write into a disk, as it is written with the disk. ``host`` is `NOBODY` for nobody.

    ``epoch`` grows with each change. ``former``: whose it is again unless the owner keeps it.
    """

    host: str
    epoch: int
    former: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.host} {self.epoch}" + (f"{_AFTER}{self.former}" if self.former is not None else "")

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """Returns None for what is no owner."""
        owner, _, former = text.partition(_AFTER)
        host, _, epoch = owner.rpartition(" ")
        return cls(host, int(epoch), former or None) if host and epoch.isdecimal() else None


@dataclass(frozen=True)
class StoredDisk:
    """A disk as its store describes it. ``size``: bytes that its guest sees.

    ``owner``: the host whose it is, and since when (`causeway.virt.shared_disks.ownership`); None: it was never finished.
    ``users``: who has it open for writing, as the store names them.
    """

    name: str
    size: int
    owner: str | None = None
    snapshots: tuple[str, ...] = ()
    users: tuple[str, ...] = ()

    @property
    def owning_host(self) -> str | None:
        """The name of the host, `NOBODY`, or what is written there if that is no owner."""
        owner = None if self.owner is None else Owner.parse(self.owner)
        return self.owner if owner is None else owner.host
