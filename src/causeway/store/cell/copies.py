"""A server with everything that belongs to it, which can be copied from cell to cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.block_device import BlockDevice
from causeway.model.host import Service
from causeway.model.instance import ActionEvent, Instance, InstanceAction, InstanceFault
from causeway.store.cell import actions, block_devices, hosts, instances
from causeway.store.database import Database, utcnow

_UUID: sa.BindParameter[str] = sa.bindparam("of_uuid")
_SERVERS, _TAGS, _DEVICES = instances.TABLE, instances.TAGS, block_devices.TABLE
_IS_COPY = sa.or_(_SERVERS.c.hidden.is_(True), _SERVERS.c.deleted)
# What belongs to a server; events go with their actions.
_OWNERS: dict[str, sa.Column[str]] = {
    "actions": actions.ACTIONS.c.instance_uuid,
    "faults": actions.FAULTS.c.instance_uuid,
    "tags": _TAGS.c.resource_id,
    "devices": _DEVICES.c.instance_uuid,
}
_OF_DEVICE = _DEVICES.c.instance_uuid == _SERVERS.c.uuid
# No tag has a comma in it.
_ALL_TAGS = sa.select(sa.func.aggregate_strings(_TAGS.c.tag, ",")).where(_TAGS.c.resource_id == _SERVERS.c.uuid)
# These have a row for each block device, and one of a server that has none.
_WITH_DEVICES = (
    sa.select(*instances.MAPPER.columns, *block_devices.MAPPER.columns, _DEVICES.c.uuid.label("device"))
    .where(_SERVERS.c.uuid == _UUID, _SERVERS.c.deleted.is_(False))
    .order_by(_DEVICES.c.id)
)
_AND_DEVICES = _SERVERS.outerjoin(_DEVICES, sa.and_(_OF_DEVICE, _DEVICES.c.deleted.is_(False)))
_WHOLE = _WITH_DEVICES.select_from(_AND_DEVICES).add_columns(
    _ALL_TAGS.scalar_subquery().label("tags"),
    # Few servers have any.
    sa.exists().where(_OWNERS["faults"] == _SERVERS.c.uuid).label("has_faults"),
)
_SERVICES, _NODES = hosts.SERVICES, hosts.NODES
_ADDRESS = sa.select(_NODES.c.host_ip).where(_NODES.c.host == _SERVERS.c.host).order_by(_NODES.c.id).limit(1)
_ON_HOST = _WITH_DEVICES.select_from(
    _AND_DEVICES.outerjoin(
        _SERVICES, sa.and_(_SERVICES.c.host == _SERVERS.c.host, _SERVICES.c.binary == sa.bindparam("of_binary"))
    )
).add_columns(
    *hosts.SERVICE.columns,
    _SERVICES.c.uuid.label("service"),
    _ADDRESS.scalar_subquery().label("address"),
    _ALL_TAGS.scalar_subquery().label("tags"),
)
_BELONGINGS = (
    sa.select(
        *(sa.exists().where(_OWNERS[name] == _SERVERS.c.uuid).label(name) for name in ("actions", "faults")),
        _ALL_TAGS.scalar_subquery().label("tags"),
        *block_devices.MAPPER.columns,
        _DEVICES.c.uuid.label("device"),
        _DEVICES.c.deleted.label("is_gone"),
    )
    .select_from(_SERVERS.outerjoin(_DEVICES, _OF_DEVICE))
    .where(_SERVERS.c.uuid == _UUID)
    .order_by(_DEVICES.c.id)
)
_HAS = sa.select(*(sa.exists().where(owner == _UUID).label(name) for name, owner in _OWNERS.items()))
_REPLACE = _SERVERS.update().where(_SERVERS.c.uuid == _UUID)
_REPLACE_COPY = _REPLACE.where(_IS_COPY)
_DELETE_SERVER = _SERVERS.delete().where(_SERVERS.c.uuid == _UUID)
_DELETE_COPY = _DELETE_SERVER.where(_IS_COPY)
_DELETE = {name: owner.table.delete().where(owner == _UUID) for name, owner in _OWNERS.items()}


@dataclass
class Bundle:
    """Everything that a cell database has of one server. Its migrations are in the API database."""

    instance: Instance
    block_devices: list[BlockDevice]
    actions: list[InstanceAction]
    faults: list[InstanceFault]


@dataclass(frozen=True)
class ServerOnHost:
    """A server, its block devices, and of the host that its record names the compute service and the address."""

    instance: Instance
    block_devices: list[BlockDevice]
    service: Service | None
    address: str | None


def on_host(database: Database, uuid: str, binary: str) -> ServerOnHost:
    """Reads a server on its host, in one statement. ``binary``: of compute services. Raises ServerNotFound."""
    with database.read() as connection:
        rows = connection.execute(_ON_HOST, {"of_uuid": uuid, "of_binary": binary}).all()
    if not rows:
        raise errors.ServerNotFound(uuid)
    service = None if rows[0].service is None else hosts.SERVICE.from_row(rows[0])
    instance = instances.from_row(rows[0], _tags_of(rows[0]))
    return ServerOnHost(instance, _devices_of(rows), service, rows[0].address)


def _devices_of(rows: Sequence[sa.Row[Any]]) -> list[BlockDevice]:
    return [block_devices.MAPPER.from_row(row) for row in rows if row.device is not None]


def _tags_of(row: sa.Row[Any]) -> list[str]:
    return sorted(row.tags.split(",")) if row.tags else []


def read(database: Database, uuid: str) -> Bundle:
    """Reads a whole server. Raises ServerNotFound."""
    with database.read() as connection:
        return _read_in(connection, uuid)


def _read_in(connection: sa.Connection, uuid: str) -> Bundle:
    rows = connection.execute(_WHOLE, {"of_uuid": uuid}).all()
    if not rows:
        raise errors.ServerNotFound(uuid)
    instance, devices = instances.from_row(rows[0], _tags_of(rows[0])), _devices_of(rows)
    faults = actions.faults_in(connection, uuid) if rows[0].has_faults else []
    return Bundle(instance, devices, actions.history(connection, uuid), faults)


def close_and_read(database: Database, uuid: str, operation_id: str) -> Bundle:
    """Closes a server's records to all writers except a move, and reads the whole server. Raises ServerNotFound.

    This is one transaction: earlier writes of others are in the bundle, and later writers get an error because the row is closed.
    """
    with database.write() as connection:
        instances.close_in(connection, uuid, operation_id)
        return _read_in(connection, uuid)


def add_events(bundle: Bundle, request_id: str | None, events: list[ActionEvent]) -> None:
    """Adds events to the newest action of a request. A failed event does not mean that the action failed."""
    action = next((found for found in reversed(bundle.actions) if found.request_id == request_id), None)
    if action is not None:
        action.events = action.events + events


def insert(database: Database, bundle: Bundle, *, closed_by: str | None = None) -> None:
    """Writes a whole new server, or a copy. Raises StateChanged if there is a record of it already."""
    with database.write() as connection:
        _insert_in(connection, bundle, closed_by)


def write(database: Database, bundle: Bundle, *, closed_by: str | None = None, is_first: bool = False) -> None:
    """Writes a whole server in one transaction. Replaces an existing copy.

    ``closed_by``: the move that makes the copy; until the server lives there, only this move may write to it. ``is_first``: as
    far as the caller knows, there is no copy yet. Raises StateChanged if a hidden copy would replace the server itself.
    """
    if is_first:
        with suppress(errors.StateChanged):
            insert(database, bundle, closed_by=closed_by)
            return
    bundle.instance.created_at = bundle.instance.created_at or utcnow()
    with database.write() as connection:
        row = instances.row_of(bundle.instance) | {"closed_by": closed_by, "of_uuid": bundle.instance.uuid}
        if connection.execute(_REPLACE_COPY if bundle.instance.hidden else _REPLACE, row).rowcount:
            _replace_belongings(connection, bundle)
        else:
            _insert_in(connection, bundle, closed_by)


def _insert_in(connection: sa.Connection, bundle: Bundle, closed_by: str | None) -> None:
    try:
        instances.insert(connection, bundle.instance, closed_by=closed_by)
    except sa.exc.IntegrityError as taken:
        raise _is_no_copy(bundle.instance.uuid) from taken
    block_devices.insert(connection, bundle.block_devices)
    _insert_history(connection, bundle)


def _replace_belongings(connection: sa.Connection, bundle: Bundle) -> None:
    uuid, tags = bundle.instance.uuid, sorted(bundle.instance.tags)
    rows = connection.execute(_BELONGINGS, {"of_uuid": uuid}).all()
    present = [row for row in rows if row.device is not None]
    _delete_from(connection, uuid, {"actions": rows[0].actions, "faults": rows[0].faults})
    if tags != _tags_of(rows[0]):
        instances.replace_tags(connection, uuid, tags)
    for row in present:
        if row.is_gone:
            block_devices.delete_in(connection, row.device)
    before = [block_devices.MAPPER.from_row(row) for row in present if not row.is_gone]
    block_devices.change_in(connection, before, bundle.block_devices)
    _insert_history(connection, bundle)


def _insert_history(connection: sa.Connection, bundle: Bundle) -> None:
    actions.insert_history(connection, bundle.actions)
    for fault in bundle.faults:
        actions.add_fault_in(connection, bundle.instance.uuid, fault)


def hard_delete(database: Database, uuid: str, *, hidden_only: bool = False) -> None:
    """Hard-deletes every row of a server, including soft-deleted ones, if there are any.

    A copy that a move leaves must be deleted for good: a later move back would meet its unique keys, and archiving a soft-deleted
    copy would delete the living server's mapping. ``hidden_only``: raises StateChanged instead of deleting the server itself.
    """
    with database.write() as connection:
        if not _delete(connection, uuid, hidden_only=hidden_only) and hidden_only:
            query = sa.select(instances.TABLE.c.uuid).where(instances.TABLE.c.uuid == uuid)
            if connection.execute(query).first() is not None:
                raise _is_no_copy(uuid)


def _delete(connection: sa.Connection, uuid: str, *, hidden_only: bool) -> bool:
    statement = _DELETE_COPY if hidden_only else _DELETE_SERVER
    if not connection.execute(statement, {"of_uuid": uuid}).rowcount:
        # Everything is written and deleted together with the server's own row.
        return False
    _delete_from(connection, uuid, dict(connection.execute(_HAS, {"of_uuid": uuid}).one()._mapping))
    return True


def _delete_from(connection: sa.Connection, uuid: str, has: Mapping[str, bool]) -> None:
    """``has``: the tables in which the server has rows."""
    for name, is_there in has.items():
        if is_there:
            connection.execute(_DELETE[name], {"of_uuid": uuid})


def _is_no_copy(uuid: str) -> errors.StateChanged:
    return errors.StateChanged(f"The record of server {uuid} in this cell is the server itself, not a copy of it.")


def exists(database: Database, uuid: str) -> bool:
    """Whether this cell has any record of the server, including deleted ones."""
    try:
        instances.get(database, uuid, deleted=True)
    except errors.ServerNotFound:
        return False
    return True
