"""Cell and host mappings."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from causeway import errors
from causeway.model.host import CellMapping, HostMapping
from causeway.store.api_tables import CellMappings, HostMappings, InstanceMappings
from causeway.store.columns import RowMapper
from causeway.store.database import Database

CELLS: sa.Table = CellMappings.__table__  # type: ignore[assignment]
HOSTS: sa.Table = HostMappings.__table__  # type: ignore[assignment]
SERVERS: sa.Table = InstanceMappings.__table__  # type: ignore[assignment]
MAPPER = RowMapper(CellMapping, CELLS)
OF_HOST = RowMapper(HostMapping, HOSTS)


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


def map_host(database: Database, host: str, cell_uuid: str, node_uuid: str | None = None) -> None:
    """Records the cell of a host, and its node unless that is None. May be repeated.

    Raises Conflict if another cell has a host of this name, the node is another host's, the host has another node, or the cell
    was deleted.
    """
    with database.write() as connection:
        if connection.scalar(sa.select(CELLS.c.id).where(CELLS.c.uuid == cell_uuid)) is None:
            raise errors.Conflict(f"The cell of host {host} was deleted: switch the host off, or give it another cell.")
        wanted = HostMapping(host, cell_uuid, node_uuid)
        same = HOSTS.c.host == host if node_uuid is None else (HOSTS.c.host == host) | (HOSTS.c.node_uuid == node_uuid)
        rows = connection.execute(sa.select(*OF_HOST.columns).where(same))
        found = {mapping.host: mapping for mapping in map(OF_HOST.from_row, rows)}
        present = found.pop(host, None)
        if present is not None and present.cell_uuid != cell_uuid:
            raise errors.Conflict(
                f"Host {host} is in another cell already, so it gets no servers in this one: host names are unique over all"
                " cells. Give it another name ([DEFAULT] host), and delete its compute service by its uuid."
            )
        for owner in found:
            raise not_its_node(host, str(node_uuid), owner)
        if present is None:
            connection.execute(HOSTS.insert(), OF_HOST.to_row(wanted))
        elif node_uuid is not None and present.node_uuid is None:
            connection.execute(HOSTS.update().where(HOSTS.c.host == host).values(node_uuid=node_uuid))
        elif node_uuid not in (None, present.node_uuid):
            raise errors.Conflict(
                f"Host {host} reports node {node_uuid}, and is known as node {present.node_uuid}. Give it the compute_id that it"
                " had, or delete its compute service if that is gone for good."
            )


def not_its_node(host: str, node_uuid: str, owner: str) -> errors.Conflict:
    """The error for a host that reports the node of another host, ``owner``."""
    return errors.Conflict(
        f"Host {host} reports node {node_uuid}, which is host {owner}'s, so it gets no servers. If its state was copied from"
        f" there, stop it, delete the file compute_id in its state_path, and delete its compute service; otherwise {host} may"
        " have been broken into."
    )


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


def find_host(database: Database, host: str) -> HostMapping | None:
    with database.read() as connection:
        row = connection.execute(sa.select(*OF_HOST.columns).where(HOSTS.c.host == host)).one_or_none()
    return None if row is None else OF_HOST.from_row(row)


def host_mappings(
    database: Database, *, hosts: Collection[str] | None = None, nodes: Collection[str] = frozenset()
) -> list[HostMapping]:
    """All mappings of hosts; or those of some hosts, and of the hosts that have one of these nodes."""
    query = sa.select(*OF_HOST.columns)
    if hosts is not None:
        query = query.where(HOSTS.c.host.in_(hosts) | HOSTS.c.node_uuid.in_(nodes))
    with database.read() as connection:
        return [OF_HOST.from_row(row) for row in connection.execute(query)]


def hosts(database: Database) -> dict[str, str]:
    """host -> uuid of its cell."""
    with database.read() as connection:
        return {row.host: row.cell_uuid for row in connection.execute(sa.select(HOSTS))}
