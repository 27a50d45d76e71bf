"""Services and compute nodes of one cell."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa

from causeway import errors
from causeway.model.host import ComputeNode, Service
from causeway.store.cell_tables import ComputeNodes, Services
from causeway.store.columns import RowMapper
from causeway.store.database import Database, parts, utcnow

T = TypeVar("T")

SERVICES: sa.Table = Services.__table__  # type: ignore[assignment]
NODES: sa.Table = ComputeNodes.__table__  # type: ignore[assignment]
SERVICE = RowMapper(Service, SERVICES)
NODE = RowMapper(ComputeNode, NODES)
_SERVICE_AND_NODE = (
    sa.select(*SERVICE.columns, *NODE.columns, NODES.c.uuid.label("node"))
    .select_from(SERVICES.outerjoin(NODES, NODES.c.host == SERVICES.c.host))
    .where(SERVICES.c.host == sa.bindparam("of_host"), SERVICES.c.binary == sa.bindparam("of_binary"))
    .order_by(SERVICES.c.id, NODES.c.id)
    .limit(1)
)


def report_service(
    database: Database, host: str, binary: str, topic: str, version: int, *, disabled_if_new: bool = False
) -> Service:
    """Records that a service is alive. The first report makes its record."""
    now = utcnow()
    with database.write() as connection:
        changed = connection.execute(
            SERVICES.update()
            .where(SERVICES.c.host == host, SERVICES.c.binary == binary)
            .values(last_seen_up=now, version=version)
        ).rowcount
        if not changed:
            service = Service(
                uuid=str(uuids.uuid4()),
                host=host,
                binary=binary,
                topic=topic,
                version=version,
                disabled=disabled_if_new,
                last_seen_up=now,
                created_at=now,
            )
            connection.execute(SERVICES.insert(), SERVICE.to_row(service))
        row = connection.execute(
            sa.select(*SERVICE.columns).where(SERVICES.c.host == host, SERVICES.c.binary == binary)
        ).one()
    return SERVICE.from_row(row)


def list_services(database: Database, *, host: str | None = None, binary: str | None = None) -> list[Service]:
    wanted = {name: value for name, value in (("host", host), ("binary", binary)) if value is not None}
    with database.read() as connection:
        return [SERVICE.from_row(row) for row in connection.execute(_select(SERVICE, tuple(wanted)), wanted)]


def service_and_node(database: Database, host: str, binary: str) -> tuple[Service | None, ComputeNode | None]:
    """A service of a host, and the host's node, in one statement. A node without such a service is not found."""
    with database.read() as connection:
        row = connection.execute(_SERVICE_AND_NODE, {"of_host": host, "of_binary": binary}).first()
    if row is None:
        return None, None
    return SERVICE.from_row(row), None if row.node is None else NODE.from_row(row)


def update_service(database: Database, service_uuid: str, **changes: Any) -> None:
    changes.setdefault("updated_at", utcnow())
    with database.write() as connection:
        connection.execute(SERVICES.update().where(SERVICES.c.uuid == service_uuid).values(SERVICE.changes(changes)))


def swap_disabled(
    database: Database, service: Service, *, was: tuple[bool, str | None], disabled: bool, disabled_reason: str | None
) -> bool:
    """Closes or opens a host to new servers, if its state is still ``was``. Returns False if it was changed."""
    before, reason = was
    conditions = [SERVICES.c.uuid == service.uuid, SERVICES.c.disabled.is_(before)]
    if before:
        conditions.append(SERVICES.c.disabled_reason == reason)
    values = {"disabled": disabled, "disabled_reason": disabled_reason, "updated_at": utcnow()}
    with database.write() as connection:
        changed = connection.execute(SERVICES.update().where(*conditions).values(SERVICE.changes(values))).rowcount
    return bool(changed)


def delete_service(database: Database, service_uuid: str) -> None:
    """Deletes a service; a compute service with its host's compute nodes."""
    with database.write() as connection:
        host = connection.execute(
            sa.select(SERVICES.c.host).where(SERVICES.c.uuid == service_uuid, SERVICES.c.binary == "nova-compute")
        ).scalar_one_or_none()
        connection.execute(SERVICES.delete().where(SERVICES.c.uuid == service_uuid))
        if host is not None:
            connection.execute(NODES.delete().where(NODES.c.host == host))


def check_node(database: Database, node: ComputeNode) -> None:
    """Raises Conflict if the host has another node (its ``state_path`` was lost), or another host has this node."""
    with database.read() as connection:
        _check_node(connection, node)


def _check_node(connection: sa.Connection, node: ComputeNode) -> None:
    alike = (NODES.c.host == node.host) | (NODES.c.uuid == node.uuid)
    known = {(row.host, row.uuid) for row in connection.execute(sa.select(NODES.c.host, NODES.c.uuid).where(alike))}
    if known and (node.host, node.uuid) not in known:
        raise _conflict(node)


def _conflict(node: ComputeNode) -> errors.Conflict:
    return errors.Conflict(
        f"Host {node.host} is known to its cell as another node than {node.uuid}, or that node is another host's."
        " Give it the compute_id that it had, or delete its compute service if that is gone for good.",
        details=f"node {node.hypervisor_hostname}",
    )


def save_node(database: Database, node: ComputeNode) -> bool:
    """Writes a host's report of its node, which is identified by its uuid. Returns whether it is new.

    Raises Conflict as `check_node`.
    """
    now = utcnow()
    with database.write() as connection:
        values = NODE.to_row(node, without=frozenset({"id", "uuid", "created_at"})) | {"updated_at": now}
        of_host = (NODES.c.uuid == node.uuid) & (NODES.c.host == node.host)
        if connection.execute(NODES.update().where(of_host).values(values)).rowcount:
            return False
        _check_node(connection, node)
        try:
            connection.execute(NODES.insert(), values | {"uuid": node.uuid, "created_at": now})
        except sa.exc.IntegrityError as error:
            raise _conflict(node) from error
        return True


def list_nodes(
    database: Database, *, host: str | None = None, uuid: str | None = None, node_id: int | None = None
) -> list[ComputeNode]:
    """The nodes, in the order of their ids; those of a host, or with this uuid or id in the cell."""
    conditions = (("host", host), ("uuid", uuid), ("id", node_id))
    wanted = {name: value for name, value in conditions if value is not None}
    with database.read() as connection:
        return [NODE.from_row(row) for row in connection.execute(_select(NODE, tuple(wanted)), wanted)]


def first_seen(database: Database, uuids: Collection[str]) -> list[tuple[str, str, datetime]]:
    """The uuid of each of these nodes that the cell has, its host, and when the host first reported it."""
    found: list[tuple[str, str, datetime]] = []
    for batch in parts(sorted(uuids)):
        with database.read() as connection:
            rows = connection.execute(
                sa.select(NODES.c.uuid, NODES.c.host, NODES.c.created_at).where(NODES.c.uuid.in_(batch))
            )
            found += [(row.uuid, row.host, row.created_at) for row in rows]
    return found


def nodes_with(database: Database, uuids: Collection[str]) -> list[ComputeNode]:
    return _some(database, NODE, NODES.c.uuid, uuids)


def compute_services_of(database: Database, hosts: Collection[str]) -> list[Service]:
    return _some(database, SERVICE, SERVICES.c.host, hosts, SERVICES.c.binary == "nova-compute")


def _some(
    database: Database,
    mapper: RowMapper[T],
    column: sa.Column[Any],
    values: Collection[str],
    *more: sa.ColumnElement[bool],
) -> list[T]:
    found: list[T] = []
    for batch in parts(sorted(values)):
        with database.read() as connection:
            rows = connection.execute(sa.select(*mapper.columns).where(column.in_(batch), *more))
            found += [mapper.from_row(row) for row in rows]
    return found


@cache
def _select(mapper: RowMapper[Any], columns: tuple[str, ...]) -> sa.Select[Any]:
    """Selects the rows in which these columns have the values of the parameters of the same names, in the order of their ids."""
    equal = [mapper.table.c[name] == sa.bindparam(name) for name in columns]
    return sa.select(*mapper.columns).where(*equal).order_by(mapper.table.c.id)


def is_up(service: Service, now: datetime, service_down_time: float) -> bool:
    """Whether a service is up: it reported in the last ``service_down_time`` seconds, and is not forced down."""
    if service.forced_down or service.last_seen_up is None:
        return False
    return (now - service.last_seen_up).total_seconds() <= service_down_time
