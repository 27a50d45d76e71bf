"""Shadow tables: where rows of deleted servers go when they are archived.

The same columns, and nothing of them unique: databases give row ids away again when their rows are gone. So each row says
itself which server it is of.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from causeway.store.cell_tables import CellBase

PREFIX = "shadow_"
OF_SERVER = "of_server"
# Children first: so they can be moved and purged one after the other.
ARCHIVED = ("instance_actions_events", "instance_actions", "instance_faults", "block_device_mapping", "instances")


def _shadow(name: str) -> sa.Table:
    table = CellBase.metadata.tables[name]
    columns: list[sa.Column[Any]] = [
        sa.Column("shadow_id", sa.Integer, primary_key=True),
        sa.Column(OF_SERVER, CellBase.metadata.tables["instances"].c.uuid.type, nullable=False, index=True),
        *(sa.Column(column.name, column.type, nullable=column.nullable) for column in table.columns),
    ]
    return sa.Table(PREFIX + name, CellBase.metadata, *columns)


SHADOWS: dict[str, sa.Table] = {name: _shadow(name) for name in ARCHIVED}
