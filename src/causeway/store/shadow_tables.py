"""Shadow tables: where rows of deleted servers go when they are archived. The same columns, and nothing that is unique."""

from __future__ import annotations

import sqlalchemy as sa

from causeway.store.cell_tables import CellBase

PREFIX = "shadow_"
# Children first: so they can be moved and purged one after the other.
ARCHIVED = ("instance_actions_events", "instance_actions", "instance_faults", "block_device_mapping", "instances")


def _shadow(name: str) -> sa.Table:
    table = CellBase.metadata.tables[name]
    columns = [
        sa.Column(
            column.name, column.type, primary_key=column.primary_key, nullable=column.nullable, autoincrement=False
        )
        for column in table.columns
    ]
    # What is left is looked for by its server only, and rarely.
    return sa.Table(PREFIX + name, CellBase.metadata, *columns)


SHADOWS: dict[str, sa.Table] = {name: _shadow(name) for name in ARCHIVED}
