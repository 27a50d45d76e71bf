"""Every recipe of the journal is in a matrix of faults, moves in one and all other operations in the other."""

from __future__ import annotations

import pytest

from causeway.operations.recipes import RECIPES
from tests.faults.moves.flows import FLOWS
from tests.faults.operations.table import OPERATIONS

ASKED_FOR: dict[str, tuple[str, ...]] = {
    **{flow.name: flow.recipes for flow in FLOWS},
    **{operation.name: operation.recipes for operation in OPERATIONS},
}


# They need a cloud that puts deletes off, which the other flows do not;
# see tests/functional/servers/build_and_delete/test_soft_delete.py.
ELSEWHERE = {"soft_delete", "restore"}


@pytest.mark.parametrize("recipe", sorted(RECIPES.keys() - ELSEWHERE))
def test_a_recipe_has_a_flow(recipe: str) -> None:
    flows = [name for name, recipes in ASKED_FOR.items() if recipe in recipes]
    assert flows, f"nobody asks for {recipe}: add it to tests/faults/moves/flows.py or tests/faults/operations/table.py"


@pytest.mark.parametrize("name", ASKED_FOR)
def test_a_flow_is_of_recipes_that_there_are(name: str) -> None:
    assert set(ASKED_FOR[name]) <= set(RECIPES)
