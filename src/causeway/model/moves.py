"""A move: a saga that brings a server to another host or flavor, or confirms or reverts that."""

from __future__ import annotations

from dataclasses import dataclass

from causeway.model.sagas import Saga


@dataclass(kw_only=True)
class Move(Saga):
    """A run of a recipe (``cross_cell_resize``, ``cross_cell_confirm``, ...) for a migration.

    ``data`` is a `causeway.moves.memory.MoveMemory`.
    """

    migration_uuid: str
    instance_uuid: str
