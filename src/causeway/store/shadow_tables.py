"""Shadow tables: where rows of deleted servers go when they are archived.

They have the same columns, without uniqueness: databases reuse the ids of deleted rows. So each row names its server and, in
the API database, which has no servers, also when that was deleted.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from causeway.store.api_tables import ApiBase
from causeway.store.cell_tables import CellBase
from causeway.store.columns import Time, keep_all_of_unicode

PREFIX = "shadow_"
OF_SERVER, SERVER_DELETED_AT = "of_server", "server_deleted_at"
# Children first, so that the tables can be moved and purged in this order.
ARCHIVED = ("instance_actions_events", "instance_actions", "instance_faults", "block_device_mapping", "instances")
API_ARCHIVED = ("moves", "migrations")


def archived_columns(table: sa.Table) -> list[sa.Column[Any]]:
    """All columns except those that the database computes from others."""
    return [column for column in table.columns if column.computed is None]


def _shadow(table: sa.Table, *more: sa.Column[Any]) -> sa.Table:
    columns: list[sa.Column[Any]] = [
        sa.Column("shadow_id", sa.Integer, primary_key=True),
        sa.Column(OF_SERVER, CellBase.metadata.tables["instances"].c.uuid.type, nullable=False, index=True),
        *more,
        *(sa.Column(column.name, column.type, nullable=column.nullable) for column in archived_columns(table)),
    ]
    return sa.Table(PREFIX + table.name, table.metadata, *columns)


SHADOWS: dict[str, sa.Table] = {name: _shadow(CellBase.metadata.tables[name]) for name in ARCHIVED}
API_SHADOWS: dict[str, sa.Table] = {
    name: _shadow(ApiBase.metadata.tables[name], sa.Column(SERVER_DELETED_AT, Time, nullable=False))
    for name in API_ARCHIVED
}
for _base in (ApiBase, CellBase):
    keep_all_of_unicode(_base.metadata)
