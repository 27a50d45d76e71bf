"""Which sagas of other releases a release continues, and which ones it leaves to them."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.sagas import Saga, SagaState
from causeway.sagas.recipe import Recipe
from causeway.sagas.versions import Knowledge


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
def test_it_continues_what_it_knows(recipe_version: int | None, memory_version: int) -> None:
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
def test_it_leaves_what_it_does_not_know(given: Any, why: str) -> None:
    assert unknown(*given) == why


@pytest.mark.parametrize(
    "changes",
    [{"version": 5}, {"continues": frozenset({2, 3})}, {"memory_version": 4}, {"oldest_memory_version": 1}],
    ids=lambda changes: next(iter(changes)),
)
def test_releases_that_know_something_else_have_another_digest(changes: dict[str, Any]) -> None:
    """So they look at what the others parked."""
    assert knowledge(**changes).digest != knowledge().digest == knowledge().digest
