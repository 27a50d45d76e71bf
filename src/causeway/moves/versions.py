"""Which moves this release can run.

A move is begun by one release and may be continued by another: processes are upgraded one after the other. So each recipe has
a version and says which older ones it can continue (`Recipe`), and so has the memory (`MEMORY_VERSION`). What a release does
not know it does not touch: it notes why, and under which knowledge it did (`knowledge`), and looks at the move again only
when that is another one. Processes of other releases are free to take it.
"""

from __future__ import annotations

import functools
import hashlib

from causeway.model.moves import Move, MoveState
from causeway.moves.memory import MEMORY_VERSION, OLDEST_MEMORY_VERSION
from causeway.moves.recipes import RECIPES

# What was written before anybody counted.
FIRST = 1
# Whoever begins a move begins it with the steps that it knows.
NOT_BEGUN = (MoveState.PROPOSED, MoveState.REQUESTED)


def unknown_in(move: Move) -> str | None:
    """Why this release can't run a move; None if it can."""
    memory = move.memory_version or FIRST
    if not OLDEST_MEMORY_VERSION <= memory <= MEMORY_VERSION:
        return f"This release reads memories of version {OLDEST_MEMORY_VERSION} to {MEMORY_VERSION}, not {memory}."
    recipe = RECIPES.get(move.recipe)
    if recipe is None:
        return f"This release has no recipe {move.recipe}."
    version = move.recipe_version or (None if move.state in NOT_BEGUN else FIRST)
    if version is not None and version != recipe.version and version not in recipe.continues:
        return f"This release runs {move.recipe} in version {recipe.version}, and can't continue version {version}."
    return None


@functools.cache
def knowledge() -> str:
    """Another string for each set of recipes and memories that a release knows."""
    recipes = sorted((recipe.name, recipe.version, sorted(recipe.continues)) for recipe in RECIPES.values())
    known = f"{OLDEST_MEMORY_VERSION} {MEMORY_VERSION} {recipes}"
    return hashlib.sha256(known.encode()).hexdigest()[:32]
