"""A server with all that belongs to it, as one thing that can be copied from cell to cell."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from causeway import errors
from causeway.model.block_device import BlockDevice
from causeway.model.instance import ActionEvent, Instance, InstanceAction, InstanceFault
from causeway.store.cell import actions, block_devices, instances
from causeway.store.database import Database


@dataclass
class Bundle:
    """Everything that a cell database holds of one server. Its migrations are in the API database."""

    instance: Instance
    block_devices: list[BlockDevice]
    actions: list[InstanceAction]
    faults: list[InstanceFault]


def read(database: Database, uuid: str, *, with_history: bool = True) -> Bundle:
    """The whole of a server, or all but its actions, events and faults; raises ServerNotFound."""
    instance = instances.get(database, uuid)
    devices = block_devices.of_instance(database, uuid)
    if not with_history:
        return Bundle(instance, devices, [], [])
    with database.read() as connection:
        return Bundle(instance, devices, actions.history(connection, uuid), actions.faults_in(connection, uuid))


def close_and_read(database: Database, uuid: str, move_id: str) -> Bundle:
    """The whole of a server, read by a move for the last time: nobody else writes to it any more. Raises ServerNotFound.

    One transaction: what others wrote before it is in the bundle, and who comes later is told that the row is closed.
    """
    with database.write() as connection:
        instances.close_in(connection, uuid, move_id)
        instance = instances.get_in(connection, uuid)
        devices = block_devices.of_instance_in(connection, uuid)
        return Bundle(instance, devices, actions.history(connection, uuid), actions.faults_in(connection, uuid))


def add_events(bundle: Bundle, request_id: str | None, events: list[ActionEvent]) -> None:
    """Adds events to the newest action of a request. What failed on the way may have gone well in the end."""
    action = next((found for found in reversed(bundle.actions) if found.request_id == request_id), None)
    if action is not None:
        action.events = action.events + events


def insert(database: Database, bundle: Bundle) -> None:
    """Writes the whole of a new server; raises StateChanged if there is a record of it already."""
    with database.write() as connection:
        try:
            instances.insert(connection, bundle.instance)
        except sa.exc.IntegrityError as taken:
            raise _is_no_copy(bundle.instance.uuid) from taken
        _insert_belongings(connection, bundle)


def write(database: Database, bundle: Bundle, *, closed_by: str | None = None) -> None:
    """Writes the whole of a server in one transaction. A copy that is there already is replaced.

    ``closed_by``: the move whose copy it is; until the server lives there nobody else writes to it.
    Raises StateChanged if a hidden copy would replace the server itself.
    """
    with database.write() as connection:
        _delete(connection, bundle.instance.uuid, hidden_only=bool(bundle.instance.hidden))
        try:
            instances.insert(connection, bundle.instance, closed_by=closed_by)
        except sa.exc.IntegrityError as taken:
            raise _is_no_copy(bundle.instance.uuid) from taken
        _insert_belongings(connection, bundle)


def _insert_belongings(connection: sa.Connection, bundle: Bundle) -> None:
    block_devices.insert(connection, bundle.block_devices)
    actions.insert_history(connection, bundle.actions)
    for fault in bundle.faults:
        actions.add_fault_in(connection, bundle.instance.uuid, fault)


def hard_delete(database: Database, uuid: str, *, hidden_only: bool = False) -> None:
    """Removes every row of a server, soft-deleted ones too. Not there: nothing happens.

    A copy that a move leaves behind must go for good: a later move back would meet its unique keys, and archiving a
    soft-deleted copy would take the living server's mapping along. ``hidden_only``: raises StateChanged rather than to
    remove the server itself.
    """
    with database.write() as connection:
        if not _delete(connection, uuid, hidden_only=hidden_only) and hidden_only:
            query = sa.select(instances.TABLE.c.uuid).where(instances.TABLE.c.uuid == uuid)
            if connection.execute(query).first() is not None:
                raise _is_no_copy(uuid)


_UUID: sa.BindParameter[str] = sa.bindparam("of_uuid")
_DELETE_SERVER = instances.TABLE.delete().where(instances.TABLE.c.uuid == _UUID)
_DELETE_COPY = _DELETE_SERVER.where(sa.or_(instances.TABLE.c.hidden.is_(True), instances.TABLE.c.deleted))
# Events go with their actions.
_DELETE_HISTORY = (
    actions.ACTIONS.delete().where(actions.ACTIONS.c.instance_uuid == _UUID),
    actions.FAULTS.delete().where(actions.FAULTS.c.instance_uuid == _UUID),
)
_DELETE_BELONGINGS = (
    instances.TAGS.delete().where(instances.TAGS.c.resource_id == _UUID),
    block_devices.TABLE.delete().where(block_devices.TABLE.c.instance_uuid == _UUID),
)


def _delete(connection: sa.Connection, uuid: str, *, hidden_only: bool) -> bool:
    statement = _DELETE_COPY if hidden_only else _DELETE_SERVER
    if not connection.execute(statement, {"of_uuid": uuid}).rowcount:
        # Everything is written and removed together with the server's own row.
        return False
    for statement in (*_DELETE_HISTORY, *_DELETE_BELONGINGS):
        connection.execute(statement, {"of_uuid": uuid})
    return True


def _is_no_copy(uuid: str) -> errors.StateChanged:
    return errors.StateChanged(f"The record of server {uuid} in this cell is the server itself, not a copy of it.")


def exists(database: Database, uuid: str) -> bool:
    """Whether this cell holds any record of the server, deleted ones included."""
    try:
        instances.get(database, uuid, deleted=True)
    except errors.ServerNotFound:
        return False
    return True
