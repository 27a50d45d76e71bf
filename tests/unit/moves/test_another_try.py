"""What a move remembers when it is tried once more: what was requested, and nothing that the first try made."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from causeway.moves.memory import MoveMemory
from causeway.moves.recipes import RECIPES
from causeway.rpc.endpoint import from_wire
from causeway.sagas.memory import known_at_start
from tests.unit.moves.remembered import MEMORY

# The steps of the recipes that begin anew when they were rolled back.
WRITTEN = sorted(
    {field for name in ("resize", "live_migration") for step in RECIPES[name].steps for field in step.writes}
)


def changed(field: str) -> tuple[MoveMemory, Any]:
    """A memory in which a field has a value that it does not have by default; and that value."""
    value: Any = object()
    fresh = from_wire(MEMORY, MoveMemory)
    return dataclasses.replace(fresh, **{field: value}), value


@pytest.mark.parametrize("field", WRITTEN)
def test_what_a_step_has_written_is_not_known_to_another_try(field: str) -> None:
    memory, _value = changed(field)
    assert memory.as_requested() == from_wire(MEMORY, MoveMemory)


@pytest.mark.parametrize("field", sorted(known_at_start(MoveMemory)))
def test_what_was_requested_is_kept(field: str) -> None:
    memory, value = changed(field)
    assert getattr(memory.as_requested(), field) is value
