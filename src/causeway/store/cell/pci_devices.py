"""The PCI devices of hosts, as they reported them."""

from __future__ import annotations

import sqlalchemy as sa

from causeway.model.pci import PciDevice
from causeway.store.cell_tables import PciDevices
from causeway.store.columns import RowMapper
from causeway.store.database import Database, utcnow

TABLE: sa.Table = PciDevices.__table__  # type: ignore[assignment]
MAPPER = RowMapper(PciDevice, TABLE)


def save(database: Database, node_uuid: str, devices: list[PciDevice]) -> None:
    """Writes a node's reported devices, if they differ from its records."""
    if devices == of_node(database, node_uuid):
        return
    with database.write() as connection:
        connection.execute(TABLE.delete().where(TABLE.c.compute_node_uuid == node_uuid))
        if devices:
            more = {"compute_node_uuid": node_uuid, "updated_at": utcnow()}
            connection.execute(TABLE.insert(), [MAPPER.to_row(device) | more for device in devices])


def of_node(database: Database, node_uuid: str) -> list[PciDevice]:
    query = sa.select(*MAPPER.columns).where(TABLE.c.compute_node_uuid == node_uuid).order_by(TABLE.c.id)
    with database.read() as connection:
        return [MAPPER.from_row(row) for row in connection.execute(query)]
