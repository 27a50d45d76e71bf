"""Limits how many live migrations leave a host at the same time. The status of a migration shows whether it has begun."""

from __future__ import annotations

import sqlalchemy as sa

from causeway.model.migration import LIVE_MIGRATION, Migration
from causeway.model.operations import NEAR_LIVE_MIGRATION
from causeway.model.states import MigrationStatus
from causeway.store.api import migrations
from causeway.store.api.journal import OPERATIONS
from causeway.store.database import Database

_TABLE = migrations.TABLE
# Their hypervisors hand nothing over.
_IS_NEAR_LIVE = sa.exists().where(
    OPERATIONS.c.migration_uuid == _TABLE.c.uuid, OPERATIONS.c.recipe == NEAR_LIVE_MIGRATION
)
_BEGUN = [
    MigrationStatus.PREPARING.value,
    MigrationStatus.RUNNING.value,
    MigrationStatus.RUNNING_POST_COPY.value,
]


def take(database: Database, migration: Migration, limit: int) -> bool:
    """Sets a migration to `preparing` if its source may send another guest, else to `queued`. Returns whether it may begin.

    ``limit``: migrations that may leave the host at the same time; 0 for no limit.
    """
    host = migration.source_compute
    with database.write() as connection:
        if limit:
            # All migrations of the host lock this row, so of two at once the second sees what the first got.
            connection.execute(sa.select(_TABLE.c.id).where(_of(host)).with_for_update()).all()
        others = connection.execute(
            sa.select(sa.func.count())
            .select_from(_TABLE)
            .where(_of(host), _TABLE.c.status.in_(_BEGUN), _TABLE.c.uuid != migration.uuid)
        ).scalar_one()
        if migration.status is MigrationStatus.ACCEPTED:
            migrations.update_in(connection, migration.uuid, status=MigrationStatus.QUEUED)
        if limit and others >= limit:
            return False
        if migration.status in (MigrationStatus.ACCEPTED, MigrationStatus.QUEUED):
            migrations.update_in(connection, migration.uuid, status=MigrationStatus.PREPARING)
    return True


def queued(database: Database, host: str) -> list[Migration]:
    """The live migrations that wait for their turn at a host, oldest first."""
    found = migrations.search(
        database, source_compute=host, migration_type=LIVE_MIGRATION, statuses=[MigrationStatus.QUEUED]
    )
    return found[::-1]


def _of(host: str | None) -> sa.ColumnElement[bool]:
    return sa.and_(
        _TABLE.c.source_compute == host,
        _TABLE.c.migration_type == LIVE_MIGRATION,
        ~_IS_NEAR_LIVE,
        _TABLE.c.status.in_([MigrationStatus.ACCEPTED.value, MigrationStatus.QUEUED.value, *_BEGUN]),
    )
