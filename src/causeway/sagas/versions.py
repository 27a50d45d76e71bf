"""The sagas that this release can run.

Processes are upgraded one after the other, so one release may continue a saga that another one began. Therefore each recipe has
a version, and says which older versions it can continue; its memory likewise. A recipe can also continue sagas of former recipes,
which had other names of steps (`Former`). A release only parks a saga that it does not know: it notes the reason and its own
knowledge (`Knowledge.digest`), and does not look at the saga until its knowledge has changed. Processes of other releases can run
the saga meanwhile.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from causeway.model.sagas import Saga
from causeway.sagas.recipe import Recipe


class Knowledge:
    """The recipes that a release has."""

    def __init__(self, recipes: Mapping[str, Recipe[Any]]) -> None:
        self.recipes = recipes
        self._formers = {former.name: (recipe, former) for recipe in recipes.values() for former in recipe.formers}

    def adopt(self, saga: Saga) -> None:
        """Gives a saga of a former recipe the one that continues it. Other sagas stay as they are."""
        if saga.recipe not in self._formers:
            return
        recipe, former = self._formers[saga.recipe]
        if saga.recipe_version is None:
            # It has not begun.
            saga.recipe = recipe.name
        elif saga.recipe_version == former.version:
            saga.recipe, saga.recipe_version = recipe.name, recipe.version

    def present_name(self, recipe: str, step: str) -> str:
        """The present name of a step of this recipe that former recipes may have called otherwise."""
        return next((each.steps[step] for each in self.recipes[recipe].formers if step in each.steps), step)

    def unknown_in(self, saga: Saga) -> str | None:
        """Returns why this release can't run a saga; None if it can."""
        recipe = self.recipes.get(saga.recipe)
        if recipe is None:
            return f"This release has no recipe {saga.recipe}."
        oldest, newest = recipe.oldest_memory_version, recipe.memory_version
        if not oldest <= saga.memory_version <= newest:
            return f"This release reads memories of version {oldest} to {newest}, not {saga.memory_version}."
        version = saga.recipe_version
        # A saga that has not begun has no version yet: the release that begins it uses its own steps.
        if version is not None and version != recipe.version and version not in recipe.continues:
            return f"This release runs {saga.recipe} in version {recipe.version}, and can't continue version {version}."
        return None

    @functools.cached_property
    def digest(self) -> str:
        """A string that differs for each set of recipes and memories that a release knows."""
        known = sorted(
            (
                each.name,
                each.version,
                sorted(each.continues),
                each.oldest_memory_version,
                each.memory_version,
                *sorted((former.name, former.version) for former in each.formers),
            )
            for each in self.recipes.values()
        )
        return hashlib.sha256(repr(known).encode()).hexdigest()[:32]
