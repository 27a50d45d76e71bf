"""A migration that waits for confirm or revert, with the move that brought its server to its target."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from causeway.model.migration import Migration
from causeway.model.operations import Operation
from causeway.model.states import MigrationStatus
from causeway.store.api import migrations
from causeway.store.api.journal import OPERATION, OPERATIONS, RESIZES
from causeway.store.database import Database


@dataclass(frozen=True)
class Finished:
    """``move``: None if the journal has none."""

    migration: Migration
    move: Operation | None


_NEWEST = (
    sa.select(*migrations.MAPPER.columns, *OPERATION.columns, OPERATIONS.c.id.label("move"))
    .select_from(
        migrations.TABLE.outerjoin(
            OPERATIONS,
            sa.and_(OPERATIONS.c.migration_uuid == migrations.TABLE.c.uuid, OPERATIONS.c.recipe.in_(RESIZES)),
        )
    )
    .where(
        migrations.TABLE.c.instance_uuid == sa.bindparam("of_instance"),
        migrations.TABLE.c.status == MigrationStatus.FINISHED.value,
    )
    # A second try is another move of the same migration.
    .order_by(migrations.TABLE.c.id.desc(), OPERATIONS.c.started_at.desc(), OPERATIONS.c.id.desc())
    .limit(1)
)


def find(database: Database, instance_uuid: str) -> Finished | None:
    """One statement."""
    with database.read() as connection:
        row = connection.execute(_NEWEST, {"of_instance": instance_uuid}).one_or_none()
    if row is None:
        return None
    return Finished(migrations.MAPPER.from_row(row), None if row.move is None else OPERATION.from_row(row))
