"""Servers that are being deleted, in the API database."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from causeway import errors
from causeway.model.operation_kinds import recipes_where
from causeway.model.operations import Operation
from causeway.model.requesters import Requester
from causeway.model.sagas import ENDED
from causeway.model.states import MigrationStatus
from causeway.store.api import journal, mappings, migrations
from causeway.store.database import Database

_OTHERS = journal.OPERATIONS.alias("others")
_OTHER = (
    sa.select(_OTHERS.c.recipe)
    .where(
        _OTHERS.c.instance_uuid == mappings.TABLE.c.instance_uuid,
        _OTHERS.c.id != sa.bindparam("of_operation"),
        _OTHERS.c.state.not_in([state.value for state in ENDED]),
        _OTHERS.c.recipe.not_in(recipes_where(lambda kind: not kind.is_waited_for)),
    )
    .limit(1)
    .scalar_subquery()
)
_WAITS_FOR_CONFIRM = sa.exists().where(
    migrations.TABLE.c.instance_uuid == mappings.TABLE.c.instance_uuid,
    migrations.TABLE.c.status == MigrationStatus.FINISHED.value,
)
_LOOK = sa.select(
    mappings.TABLE.c.cell_uuid, _OTHER.label("other"), _WAITS_FOR_CONFIRM.label("waits_for_confirm")
).where(mappings.TABLE.c.instance_uuid == sa.bindparam("of_uuid"))


@dataclass(frozen=True)
class Sight:
    """A server that is being deleted, and what prevents it. ``other``: an operation on it that has not ended.

    ``waits_for_confirm``: it was resized, and neither confirmed nor reverted.
    """

    cell_uuid: str
    other: str | None
    waits_for_confirm: bool


def ask(database: Database, operation: Operation, requester: Requester) -> bool:
    """Accepts the request to delete a server, in one transaction.

    Returns False if it is being deleted already, or does not exist.
    """
    unasked = (mappings.TABLE.c.instance_uuid == operation.instance_uuid, mappings.TABLE.c.queued_for_delete.is_(False))
    with database.write() as connection:
        if not connection.execute(mappings.TABLE.update().where(*unasked).values(queued_for_delete=True)).rowcount:
            return False
        journal.insert_in(connection, operation, requester=requester)
    return True


def queue_in(connection: sa.Connection, instance_uuid: str) -> None:
    """Marks a server as being deleted. May be repeated."""
    mapping = mappings.TABLE.update().where(mappings.TABLE.c.instance_uuid == instance_uuid)
    connection.execute(mapping.values(queued_for_delete=True))


def look(database: Database, operation: Operation) -> Sight:
    """One statement; raises ServerNotFound."""
    with database.read() as connection:
        found = connection.execute(
            _LOOK, {"of_uuid": operation.instance_uuid, "of_operation": operation.id}
        ).one_or_none()
    if found is None or found.cell_uuid is None:
        raise errors.ServerNotFound(operation.instance_uuid)
    return Sight(found.cell_uuid, found.other, bool(found.waits_for_confirm))
