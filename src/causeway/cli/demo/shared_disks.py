"""The table of a cloud whose disks are in shared storage: what each move sent of them, and for how long its guest was off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.table import Table

from causeway.cli.demo.evidence import Counted
from causeway.model.operations import LIVE_MIGRATION, NEAR_LIVE_MIGRATION, RESIZE, REVERT_RESIZE

# Steps that have the guest off, or standing still.
_OFF = {
    RESIZE: ("HandOver", "FinishAtTarget"),
    REVERT_RESIZE: ("DestroyAtTarget", "ReturnRecord", "DeleteTargetRecords", "RestoreAtSource"),
    NEAR_LIVE_MIGRATION: ("SaveGuest", "WakeGuest", "SwitchInstanceMapping", "ShowAtTarget", "LetGuestGoOn"),
}
_SENT = ("CopyWhileRunning", "HandOver", "SaveGuest")


@dataclass(frozen=True)
class DiskMove:
    """``sent``: bytes of disks; ``off``: seconds, None for a guest that ran all the time."""

    server: str
    recipe: str
    source: str
    target: str
    sent: int
    off: float | None


def disk_moves(server: str, moves: list[dict[str, Any]], counted: dict[str, Counted]) -> list[DiskMove]:
    """The moves of a server that its guest went with. ``moves``: as `causeway operation show` shows them."""
    return [
        _disk_move(server, move, counted[move["migration_uuid"]])
        for move in moves
        if move["recipe"] in (*_OFF, LIVE_MIGRATION) and move["migration_uuid"] in counted
    ]


def _disk_move(server: str, move: dict[str, Any], counted: Counted) -> DiskMove:
    recipe, steps = move["recipe"], [step for step in move["steps"] if step["phase"] == "do"]
    source, target = counted.source_compute, counted.dest_compute
    if recipe == LIVE_MIGRATION:
        return DiskMove(server, recipe, source, target, counted.disk_processed_bytes or 0, None)
    if recipe == REVERT_RESIZE:
        source, target = target, source
    sent = sum(step["bytes_done"] or 0 for step in steps if step["step"] in _SENT)
    if recipe == NEAR_LIVE_MIGRATION:
        # What is saved has the memory in it.
        sent -= counted.memory_processed_bytes or 0
    off = sum(step["seconds"] or 0.0 for step in steps if step["step"] in _OFF[recipe])
    return DiskMove(server, recipe, source, target, sent, off)


def disks_that_moved(moves: list[DiskMove]) -> Table:
    table = Table(title="Disks in shared storage", title_justify="left")
    table.add_column("Move", no_wrap=True)
    table.add_column("From, to", no_wrap=True)
    table.add_column("Bytes of disk", justify="right")
    table.add_column("Guest off", justify="right")
    for move in moves:
        off = f"{move.off:.2f} s" if move.off is not None else "never"
        way = f"{move.source} -> {move.target}"
        table.add_row(f"{move.server}: {move.recipe}", way, f"{move.sent:,} B", off)
    return table
