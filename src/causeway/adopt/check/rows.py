"""Tables of Nova with only those columns that a check of all servers reads: the others are large, or nobody asks for them."""

from __future__ import annotations

import sqlalchemy as sa

from causeway.adopt.nova import tables


def _narrow(table: sa.TableClause, *columns: str) -> sa.TableClause:
    return sa.table(table.name, *(sa.column(name, table.c[name].type) for name in columns))


PLACES = _narrow(
    tables.INSTANCES, "id", "uuid", "project_id", "display_name", "host", "node", "vm_state", "hidden", "deleted"
)
STANDING = _narrow(
    tables.INSTANCES, "id", "uuid", "project_id", "display_name", "host", "node", "compute_id", "vm_state", "task_state",
    "config_drive", "hidden", "deleted",
)  # fmt: skip
EXTRAS = _narrow(
    tables.INSTANCE_EXTRA, "id", "instance_uuid", "flavor", "numa_topology", "pci_requests", "keypairs", "trusted_certs",
    "vpmems", "resources", "deleted",
)  # fmt: skip
NODES = _narrow(tables.COMPUTE_NODES, "id", "uuid", "host", "hypervisor_hostname", "hypervisor_type", "deleted")
UUIDS = _narrow(tables.INSTANCES, "uuid", "deleted")

__all__ = ["EXTRAS", "NODES", "PLACES", "STANDING", "UUIDS"]
