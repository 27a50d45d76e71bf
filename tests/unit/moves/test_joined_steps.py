"""Steps of real recipes that begin with the one before them (`causeway.sagas.progress`)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from causeway import errors
from causeway.moves.steps import confirm
from causeway.operations.recipes import RECIPES
from causeway.sagas.recipe import Recipe, Step


def pairs(recipe: Recipe[Any]) -> list[tuple[Step[Any], Step[Any]]]:
    """The steps that follow one another in some saga of the recipe, if the second joins the first."""
    found = []
    for place, step in enumerate(recipe.steps):
        for former in reversed(recipe.steps[:place]):
            if former.name in step.joins:
                found.append((former, step))
            if former.condition is None or former.condition is step.condition:
                break
    return found


def test_every_pair_of_joined_steps_is_known() -> None:
    """Each of them is a promise: the first one gives the same if it is done again after the second has begun."""
    found = {name: [f"{former.name}+{step.name}" for former, step in pairs(recipe)] for name, recipe in RECIPES.items()}
    assert {name: names for name, names in found.items() if names} == {
        "build": ["PlaceInCell+MakeDevices"],
        "resize": ["TargetDBSetup+ReserveTarget", "FinishAtTarget+MoveRecord", "FinishAtTarget+SwitchInstanceMapping"],
        "confirm_resize": ["ReleaseSource+DeleteSourceRecords"],
        "revert_resize": [
            "CheckSource+ReturnRecords",
            "DestroyAtTarget+DeleteTargetRecords",
            "RestoreAtSource+ReturnAllocations",
        ],
    }


@pytest.mark.parametrize("name", ["build", "resize", "confirm_resize", "revert_resize"])
def test_a_release_that_does_not_join_them_parks_such_a_saga(name: str) -> None:
    """It would not know that the second step may have begun."""
    recipe = RECIPES[name]
    assert recipe.version > 1 and recipe.continues == frozenset(range(1, recipe.version))


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_no_joined_step_needs_a_write_of_its_own(recipe: Recipe[Any]) -> None:
    for _former, step in pairs(recipe):
        assert not step.pivots and step.first_round is None


@pytest.mark.parametrize("are_there", [True, False])
def test_a_source_is_released_again_after_its_records_were_deleted(
    monkeypatch: pytest.MonkeyPatch, *, are_there: bool
) -> None:
    done, record = list[str](), SimpleNamespace()

    def source_instance() -> Any:
        if not are_there:
            raise errors.ServerNotFound("server")
        return record

    notifier = SimpleNamespace(is_enabled=True, instance_action=lambda *_, **__: done.append("notified"))
    run: Any = SimpleNamespace(
        is_repeated=True,
        services=SimpleNamespace(notifier=notifier, host="conductor"),
        context=None,
        memory=SimpleNamespace(is_cross_cell=True),
        source_instance=source_instance,
    )
    monkeypatch.setattr(confirm, "is_deleting", lambda _run: False)
    monkeypatch.setattr(confirm, "require_whole_target_again", lambda _run: done.append("checked"))
    monkeypatch.setattr(confirm, "release_source", lambda *_: done.append("released"))
    confirm.ReleaseSource().do(run)
    assert done == (["checked", "notified", "released"] if are_there else ["checked", "released"])
