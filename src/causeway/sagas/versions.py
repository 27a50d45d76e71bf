"""Which sagas this release can run.

A saga is begun by one release and may be continued by another: processes are upgraded one after the other. So each recipe has
a version and says which older ones it can continue, and so has its memory. What a release does not know it does not touch: it
notes why, and under which knowledge it did (`Knowledge.digest`), and looks at the saga again only when that is another one.
Processes of other releases are free to run it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from causeway.model.sagas import Saga, SagaState
from causeway.sagas.recipe import Recipe

# What was written before anybody counted.
FIRST = 1
# Whoever begins a saga begins it with the steps that it knows.
NOT_BEGUN = (SagaState.PROPOSED, SagaState.REQUESTED)


class Knowledge:
    """The recipes that a release has."""

    def __init__(self, recipes: Mapping[str, Recipe[Any]]) -> None:
        self.recipes = recipes

    def unknown_in(self, saga: Saga) -> str | None:
        """Why this release can't run a saga; None if it can."""
        recipe = self.recipes.get(saga.recipe)
        if recipe is None:
            return f"This release has no recipe {saga.recipe}."
        oldest, newest, memory = recipe.oldest_memory_version, recipe.memory_version, saga.memory_version or FIRST
        if not oldest <= memory <= newest:
            return f"This release reads memories of version {oldest} to {newest}, not {memory}."
        version = saga.recipe_version or (None if saga.state in NOT_BEGUN else FIRST)
        if version is not None and version != recipe.version and version not in recipe.continues:
            return f"This release runs {saga.recipe} in version {recipe.version}, and can't continue version {version}."
        return None

    @functools.cached_property
    def digest(self) -> str:
        """Another string for each set of recipes and memories that a release knows."""
        known = sorted(
            (each.name, each.version, sorted(each.continues), each.oldest_memory_version, each.memory_version)
            for each in self.recipes.values()
        )
        return hashlib.sha256(repr(known).encode()).hexdigest()[:32]
