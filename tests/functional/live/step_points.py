"""The fault points of the steps that live migrations inside a cell have, or those to another cell."""

from __future__ import annotations

from causeway.faults import points
from causeway.moves.recipe import ACROSS_CELLS, INSIDE_CELL
from causeway.moves.recipes import LIVE_MIGRATE


def doing(*, across_cells: bool) -> list[str]:
    return [point for point in _of(across_cells) if ".do." in point]


def undoing(*, across_cells: bool) -> list[str]:
    return [point for point in _of(across_cells) if ".undo." in point or "roll_back" in point]


def _of(across_cells: bool) -> list[str]:
    others = INSIDE_CELL if across_cells else ACROSS_CELLS
    without = tuple(f"{LIVE_MIGRATE.name}.{step.name}." for step in LIVE_MIGRATE.steps if step.condition is others)
    return [
        point
        for point in points.step_points()
        if point.startswith(f"{LIVE_MIGRATE.name}.") and not point.startswith(without)
    ]
