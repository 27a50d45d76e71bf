"""Which sagas of other releases a release continues, and which ones it leaves to them."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.sagas import Saga, SagaState
from causeway.sagas.recipe import Former, Recipe
from causeway.sagas.versions import Knowledge

FORMERS = (Former("copy_once", 2, {"Send": "HandOver"}),)


def knowledge(**changes: Any) -> Knowledge:
    given: dict[str, Any] = {
        "version": 4,
        "continues": frozenset({3}),
        "memory_version": 3,
        "oldest_memory_version": 2,
    } | changes
    return Knowledge({"copy": Recipe("copy", (), pivot="", rolled_back=lambda _run, _cause: None, **given)})


def unknown(recipe_version: int | None, memory_version: int, recipe: str = "copy") -> str:
    state = SagaState.REQUESTED if recipe_version is None else SagaState.RUNNING
    saga = Saga(id="1", recipe=recipe, state=state, recipe_version=recipe_version, memory_version=memory_version)
    return knowledge().unknown_in(saga) or ""


@pytest.mark.parametrize("recipe_version", [None, 3, 4], ids=["not begun", "one that it continues", "its own"])
@pytest.mark.parametrize("memory_version", [2, 3])
def test_a_release_continues_sagas_that_it_knows(recipe_version: int | None, memory_version: int) -> None:
    assert unknown(recipe_version, memory_version) == ""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ((2, 3), "This release runs copy in version 4, and can't continue version 2."),
        ((5, 3), "This release runs copy in version 4, and can't continue version 5."),
        ((4, 1), "This release reads memories of version 2 to 3, not 1."),
        ((4, 4), "This release reads memories of version 2 to 3, not 4."),
        ((None, 4), "This release reads memories of version 2 to 3, not 4."),
        ((4, 3, "teleport"), "This release has no recipe teleport."),
    ],
)
def test_a_release_leaves_sagas_that_it_does_not_know(given: Any, why: str) -> None:
    assert unknown(*given) == why


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 5},
        {"continues": frozenset({2, 3})},
        {"memory_version": 4},
        {"oldest_memory_version": 1},
        {"formers": FORMERS},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_releases_that_know_something_else_have_another_digest(changes: dict[str, Any]) -> None:
    """So they look at what the others parked."""
    assert knowledge(**changes).digest != knowledge().digest == knowledge().digest


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        (("copy_once", 2), ("copy", 4)),
        (("copy_once", None), ("copy", None)),
        (("copy_once", 1), ("copy_once", 1)),
        (("copy", 3), ("copy", 3)),
    ],
)
def test_sagas_of_a_former_recipe_are_adopted(given: tuple[str, int | None], becomes: tuple[str, int | None]) -> None:
    state = SagaState.REQUESTED if given[1] is None else SagaState.RUNNING
    saga = Saga(id="1", recipe=given[0], state=state, recipe_version=given[1], memory_version=3)
    known = knowledge(formers=FORMERS)
    known.adopt(saga)
    assert (saga.recipe, saga.recipe_version) == becomes
    assert known.present_name("copy", "Send") == "HandOver" and known.present_name("copy", "Keep") == "Keep"
