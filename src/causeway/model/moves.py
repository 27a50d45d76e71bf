"""An operation: a saga that works on a server. Most are *moves*: they work for a migration."""

from __future__ import annotations

from dataclasses import dataclass

from causeway.model.sagas import Saga, StepRecord


@dataclass(kw_only=True)
class Move(Saga):
    """A run of a recipe (``cross_cell_resize``, ``cross_cell_confirm``, ``shelve``, ...).

    ``migration_uuid``: its own id, if it works for no migration.
    """

    migration_uuid: str
    instance_uuid: str
    #: where the server was when somebody acquired the operation; not kept
    cell_uuid: str | None = None
    #: of a short operation, which is written in one row; None: each is a row of its own
    steps: list[StepRecord] | None = None

    @property
    def resource_id(self) -> str | None:
        """The volume or the port that is attached or detached."""
        found: str | None = self.data.get("resource_id")
        return found

    @property
    def is_for_migration(self) -> bool:
        return self.migration_uuid != self.id
