"""The disk of a server that moves inside of storage that hosts share.

It is there once, whichever host uses it. So the server keeps it while it moves, and its migration gets only what the server
leaves behind: otherwise a move would need room for a second disk that nobody writes.
"""

from __future__ import annotations

import os_resource_classes

from causeway.clients.placement.types import Allocations

DISK = os_resource_classes.DISK_GB


def left_behind(held: Allocations, target: Allocations) -> Allocations:
    """What a move's migration gets of what its server holds: all but a disk that the server still has with ``target``.

    A disk that becomes smaller is counted twice, so that there is room for it when the move is reverted.
    """
    kept = {
        provider for provider in of_storage(held) & of_storage(target) if target[provider][DISK] >= held[provider][DISK]
    }
    return {provider: resources for provider, resources in held.items() if provider not in kept} or held


def returned(left: Allocations, held: Allocations, disk_gb: int | None) -> Allocations:
    """What a server gets back from its migration: with its disk, if it has kept that.

    ``left``: what the migration has; ``held``: what the server has. ``disk_gb``: GiB of the disk before the move; None: as now.
    """
    if any(DISK in resources for resources in left.values()) or disk_gb == 0:
        return left
    kept = {provider: {DISK: disk_gb or held[provider][DISK]} for provider in of_storage(held)}
    return left | kept


def of_storage(held: Allocations) -> set[str]:
    """The providers that give nothing but disk: storage that hosts share."""
    return {provider for provider, resources in held.items() if resources.keys() == {DISK}}
