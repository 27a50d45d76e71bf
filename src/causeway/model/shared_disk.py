"""Disks in a store that several hosts reach, as hosts describe them to one another and to the conductor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SharedDisk:
    """``store``: which store keeps it (`causeway.virt.shared_disks.store`). ``name``: there. ``owner``: whose it is."""

    store: str
    name: str
    owner: str


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
        """The name of the host; ``-`` for nobody."""
        return None if self.owner is None else self.owner.partition(" after ")[0].rpartition(" ")[0]
