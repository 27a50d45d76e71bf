"""The fault points of the steps that live migrations inside a cell have, or those to another cell."""

from __future__ import annotations

from causeway.faults import points
from causeway.moves.recipe import ACROSS_CELLS, INSIDE_CELL, WITH_PORT_DEVICES, Recipe
from causeway.moves.recipes import LIVE_MIGRATE, NEAR_LIVE_MIGRATE


def doing(*, across_cells: bool, port_devices: bool = False) -> list[str]:
    return [point for point in _of(across_cells, port_devices) if ".do." in point]


def undoing(*, across_cells: bool, port_devices: bool = False) -> list[str]:
    return _undoing(_of(across_cells, port_devices))


def doing_near_live(*, port_devices: bool = False) -> list[str]:
    return [point for point in _near_live(port_devices) if ".do." in point]


def undoing_near_live(*, port_devices: bool = False) -> list[str]:
    return _undoing(_near_live(port_devices))


def _undoing(points_of_steps: list[str]) -> list[str]:
    return [point for point in points_of_steps if ".undo." in point or "roll_back" in point]


def _of(across_cells: bool, port_devices: bool) -> list[str]:
    others = {INSIDE_CELL if across_cells else ACROSS_CELLS, *(() if port_devices else (WITH_PORT_DEVICES,))}
    return _without(LIVE_MIGRATE, others)


def _near_live(port_devices: bool) -> list[str]:
    return _without(NEAR_LIVE_MIGRATE, set() if port_devices else {WITH_PORT_DEVICES})


def _without(recipe: Recipe, conditions: set[object]) -> list[str]:
    """The points of the steps that don't have one of these conditions."""
    without = tuple(f"{recipe.name}.{step.name}." for step in recipe.steps if step.condition in conditions)
    return [
        point
        for point in points.step_points()
        if point.startswith(f"{recipe.name}.") and not (without and point.startswith(without))
    ]
