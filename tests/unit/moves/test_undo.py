"""What a step makes outside of the journal before its saga's pivot can be undone."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.things import Thing
from causeway.operations.recipes import RECIPES
from causeway.sagas.recipe import Recipe, Step

# A rebuild replaces a disk that is gone by then: what is left is a server in ERROR that can be rebuilt again or deleted. The
# attachment that keeps its root volume reserved is in the server's record, and goes with the server.
NOT_UNDONE = {
    ("rebuild", "RebuildGuest"),
    ("rebuild_volume", "ReleaseRootVolume"),
    ("rebuild_volume", "RebuildGuest"),
}
# Things of services that can't refuse a call because it comes too late. Computes can, and their orders make the rest.
OF_SERVICES = {Thing.ALLOCATION, Thing.ATTACHMENT, Thing.BINDING, Thing.PORT, Thing.SNAPSHOT, Thing.VOLUME}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_steps_that_make_something_before_the_pivot_can_undo_it(recipe: Recipe[Any]) -> None:
    before = recipe.steps[: recipe.index(recipe.pivot) + 1] if recipe.pivot else recipe.steps
    makers = {step.name for step in before if step.makes and type(step).undo is Step.undo}
    assert {(recipe.name, name) for name in makers} <= NOT_UNDONE


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_what_a_slow_conductor_makes_too_late_can_be_undone(recipe: Recipe[Any]) -> None:
    before = recipe.steps[: recipe.index(recipe.pivot) + 1] if recipe.pivot else recipe.steps
    made = {thing for step in before for thing in step.makes}
    assert recipe.undo_late is not None or not made & OF_SERVICES


def test_what_is_made_is_known_by_name() -> None:
    made = {thing for recipe in RECIPES.values() for step in recipe.steps for thing in step.makes}
    assert made == set(Thing)
