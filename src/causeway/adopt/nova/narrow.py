"""Tables of Nova with only those columns that are read of many rows: the others are large."""

from __future__ import annotations

import sqlalchemy as sa

from causeway.adopt.nova import tables


def _narrow(table: sa.TableClause, *columns: str) -> sa.TableClause:
    return sa.table(table.name, *(sa.column(name, table.c[name].type) for name in columns))


PLACES = _narrow(
    tables.INSTANCES,
    "id",
    "uuid",
    "project_id",
    "display_name",
    "host",
    "node",
    "vm_state",
    "hidden",
    "updated_at",
    "deleted",
)
NODES = _narrow(tables.COMPUTE_NODES, "id", "uuid", "host", "hypervisor_hostname", "hypervisor_type", "deleted")
UUIDS = _narrow(tables.INSTANCES, "uuid", "deleted")

__all__ = ["NODES", "PLACES", "UUIDS"]
