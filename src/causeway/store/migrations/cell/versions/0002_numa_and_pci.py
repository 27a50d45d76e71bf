"""NUMA topologies and PCI devices of hosts, and the devices of servers."""

import sqlalchemy as sa
from alembic import op

from causeway.store.cell_tables import CellBase

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now: only older databases lack something.
    _add("instances", sa.Column("pci_devices", sa.JSON, nullable=False, server_default="[]"))
    _add("compute_nodes", sa.Column("numa_topology", sa.JSON, nullable=True))
    _add("compute_nodes", sa.Column("pci_stats", sa.JSON, nullable=False, server_default="[]"))
    CellBase.metadata.tables["pci_devices"].create(op.get_bind(), checkfirst=True)


def _add(table: str, column: "sa.Column[object]") -> None:
    if column.name not in {known["name"] for known in sa.inspect(op.get_bind()).get_columns(table)}:
        op.add_column(table, column)
