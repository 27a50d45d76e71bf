"""A disk in a store that several hosts reach, as one host describes it to another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SharedDisk:
    """``store``: which store keeps it (`causeway.virt.shared_disks.store`). ``name``: there. ``owner``: whose it is."""

    store: str
    name: str
    owner: str
