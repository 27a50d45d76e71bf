"""Cell and host mappings."""

from __future__ import annotations

import sqlalchemy as sa

from causeway import errors
from causeway.model.host import CellMapping
from causeway.store.api_tables import CellMappings, HostMappings, InstanceMappings
from causeway.store.columns import RowMapper
from causeway.store.database import Database

CELLS: sa.Table = CellMappings.__table__  # type: ignore[assignment]
HOSTS: sa.Table = HostMappings.__table__  # type: ignore[assignment]
SERVERS: sa.Table = InstanceMappings.__table__  # type: ignore[assignment]
MAPPER = RowMapper(CellMapping, CELLS)


def list_cells(database: Database) -> list[CellMapping]:
    """All cells, including cell0, in the order in which they were made."""
    with database.read() as connection:
        return [MAPPER.from_row(row) for row in connection.execute(sa.select(*MAPPER.columns).order_by(CELLS.c.id))]


def save_cell(database: Database, cell: CellMapping) -> None:
    """Makes a cell, or changes the one with the same uuid."""
    row = MAPPER.to_row(cell)
    with database.write() as connection:
        if not connection.execute(CELLS.update().where(CELLS.c.uuid == cell.uuid).values(row)).rowcount:
            connection.execute(CELLS.insert(), row)


def delete_empty_cell(database: Database, cell: CellMapping) -> None:
    """Deletes a cell, and the mappings of its hosts and of its deleted servers. Raises Conflict if it has servers.

    From here on no host can be mapped to it, not even one that is reporting now.
    """
    with database.write() as connection:
        of_cell = SERVERS.c.cell_uuid == cell.uuid
        servers = connection.scalar(
            sa.select(sa.func.count()).select_from(SERVERS).where(of_cell, SERVERS.c.queued_for_delete.is_(False))
        )
        if servers:
            raise errors.Conflict(f"Cell {cell.name} has {servers} servers: move or delete them first.")
        connection.execute(HOSTS.delete().where(HOSTS.c.cell_uuid == cell.uuid))
        connection.execute(SERVERS.delete().where(of_cell))
        connection.execute(CELLS.delete().where(CELLS.c.uuid == cell.uuid))


def map_host(database: Database, host: str, cell_uuid: str) -> None:
    """Records the cell of a host. Raises Conflict if another cell has a host of this name, or the cell was deleted."""
    with database.write() as connection:
        if connection.scalar(sa.select(CELLS.c.id).where(CELLS.c.uuid == cell_uuid)) is None:
            raise errors.Conflict(f"The cell of host {host} was deleted: switch the host off, or give it another cell.")
        found = connection.execute(sa.select(HOSTS.c.cell_uuid).where(HOSTS.c.host == host)).scalar_one_or_none()
        if found is None:
            connection.execute(HOSTS.insert(), {"host": host, "cell_uuid": cell_uuid})
        elif found != cell_uuid:
            raise errors.Conflict(f"Host {host} is in another cell already; host names are unique over all cells.")


def unmap_host(database: Database, host: str) -> None:
    with database.write() as connection:
        connection.execute(HOSTS.delete().where(HOSTS.c.host == host))


def cell_of_host(database: Database, host: str) -> str:
    """The uuid of the host's cell; raises HostNotFound."""
    with database.read() as connection:
        found = connection.execute(sa.select(HOSTS.c.cell_uuid).where(HOSTS.c.host == host)).scalar_one_or_none()
    if found is None:
        raise errors.HostNotFound(f"Compute host {host} could not be found.")
    return str(found)


def contents(database: Database) -> dict[str, tuple[int, int]]:
    """cell -> (number of hosts, number of servers that are not deleted). One statement."""
    none = sa.literal(0)
    of_hosts = sa.select(HOSTS.c.cell_uuid, sa.func.count(), none).group_by(HOSTS.c.cell_uuid)
    of_servers = (
        sa.select(SERVERS.c.cell_uuid, none, sa.func.count())
        .where(SERVERS.c.queued_for_delete.is_(False), SERVERS.c.cell_uuid.is_not(None))
        .group_by(SERVERS.c.cell_uuid)
    )
    found: dict[str, tuple[int, int]] = {}
    with database.read() as connection:
        for cell_uuid, host_count, server_count in connection.execute(sa.union_all(of_hosts, of_servers)):
            hosts_before, servers_before = found.get(cell_uuid, (0, 0))
            found[cell_uuid] = (hosts_before + host_count, servers_before + server_count)
    return found


def hosts(database: Database) -> dict[str, str]:
    """host -> uuid of its cell."""
    with database.read() as connection:
        return {row.host: row.cell_uuid for row in connection.execute(sa.select(HOSTS))}
