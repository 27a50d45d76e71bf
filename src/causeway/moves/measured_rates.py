"""What a server's last warm copy measured: how fast its guest changes its disks, and how fast they are copied."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from causeway.model.operations import Operation
from causeway.model.warm import WarmCopy

_MIB = 1 << 20


def last_measured(operations: Sequence[Operation]) -> WarmCopy | None:
    """``operations``: a server's, oldest first. None: none of them has copied disks in at least two rounds."""
    for operation in reversed(operations):
        kept = operation.data.get("warm")
        warm = msgspec.convert(kept, WarmCopy) if kept else None
        if warm is not None and warm.change_rate and warm.copy_rate:
            return warm
    return None


def described(warm: WarmCopy | None, throttle: float) -> str:
    """Says how much of the disks is left for when the guest is off; empty if nothing was measured.

    ``throttle``: see ``[moves]``.
    """
    if warm is None or not warm.change_rate or not warm.copy_rate:
        return ""
    said = f"when they last were, {warm.copy_rate / _MIB:.1f} MiB/s were copied, and it changed {warm.change_rate / _MIB:.1f}"
    if warm.change_rate < warm.copy_rate * (throttle or 1.0):
        return said
    if throttle:
        return f"{said}: it may only write {throttle:.0%} of what is copied meanwhile"
    return f"{said}: most of what it changes travels while it is off, unless [moves] throttle limits it"
