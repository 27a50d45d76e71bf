"""Writes servers: their records in a cell's database, then those in the API database, which make them visible."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from causeway.adopt.records import ImportedServer
from causeway.store.api import adoptions, mappings, migrations
from causeway.store.api.adoptions import Adoption
from causeway.store.cell import actions, block_devices, instances
from causeway.store.database import Database, parts, utcnow

KIND = "server"


def write(
    in_api: sa.Connection,
    cell: Database,
    cell_uuid: str,
    servers: Sequence[ImportedServer],
    digests: Mapping[str, str],
    nova_ids: Mapping[str, int],
) -> None:
    """Replaces all records of some servers. A process that dies here leaves servers that the next import writes again.

    ``in_api``: a transaction of the API database that has written nothing yet.
    """
    now, uuids = utcnow(), [server.instance.uuid for server in servers]
    with cell.write() as connection:
        _delete_from_cell(connection, uuids)
        _insert_in_cell(connection, servers, now)
    _delete_from_api(in_api, uuids)
    _insert_in_api(in_api, servers, cell_uuid, now)
    adoptions.save_in(in_api, [Adoption(KIND, uuid, digests[uuid], now, nova_ids[uuid], cell_uuid) for uuid in uuids])


def delete(in_api: sa.Connection, cell: Database, uuids: Collection[str]) -> None:
    """Deletes all records of some servers, and that they were imported. The next import repeats it if this process dies."""
    delete_from_cell(cell, uuids)
    _delete_from_api(in_api, uuids)
    adoptions.delete_in(in_api, KIND, uuids)


def delete_from_cell(cell: Database, uuids: Collection[str]) -> None:
    """Deletes the records of servers that live in another cell now."""
    with cell.write() as connection:
        _delete_from_cell(connection, uuids)


def _delete_from_cell(connection: sa.Connection, uuids: Collection[str]) -> None:
    for part in parts(list(uuids)):
        of_server = actions.ACTIONS.c.instance_uuid.in_(part)
        events = actions.EVENTS.c.action_id.in_(sa.select(actions.ACTIONS.c.id).where(of_server))
        connection.execute(actions.EVENTS.delete().where(events))
        connection.execute(actions.ACTIONS.delete().where(of_server))
        connection.execute(actions.FAULTS.delete().where(actions.FAULTS.c.instance_uuid.in_(part)))
        connection.execute(instances.TAGS.delete().where(instances.TAGS.c.resource_id.in_(part)))
        devices = block_devices.TABLE
        connection.execute(devices.delete().where(devices.c.instance_uuid.in_(part)))
        connection.execute(instances.TABLE.delete().where(instances.TABLE.c.uuid.in_(part)))


def _insert_in_cell(connection: sa.Connection, servers: Sequence[ImportedServer], now: datetime) -> None:
    _insert(connection, instances.TABLE, [instances.row_of(each.instance) | {"closed_by": None} for each in servers])
    _insert(
        connection,
        instances.TAGS,
        [{"resource_id": each.instance.uuid, "tag": tag} for each in servers for tag in each.instance.tags],
    )
    block_devices.insert(connection, [device for each in servers for device in each.block_devices])
    _insert(
        connection,
        actions.FAULTS,
        [
            actions.FAULT.to_row(each.fault)
            | {"instance_uuid": each.instance.uuid, "created_at": each.fault.created_at or now}
            for each in servers
            if each.fault is not None
        ],
    )
    actions.insert_history(connection, [action for each in servers for action in each.actions])


def _delete_from_api(connection: sa.Connection, uuids: Collection[str]) -> None:
    for part in parts(list(uuids)):
        for table in (mappings.TABLE, mappings.SPECS, migrations.TABLE):
            connection.execute(table.delete().where(table.c.instance_uuid.in_(part)))


def _insert_in_api(connection: sa.Connection, servers: Sequence[ImportedServer], cell_uuid: str, now: datetime) -> None:
    _insert(
        connection,
        migrations.TABLE,
        [
            migrations.MAPPER.to_row(each) | {"updated_at": each.updated_at or each.created_at}
            for server in servers
            for each in server.migrations
        ],
    )
    _insert(
        connection,
        mappings.SPECS,
        [{"instance_uuid": each.instance.uuid, "spec": each.spec.to_persist()} for each in servers],
    )
    made = [
        mappings.InstanceMapping(
            each.instance.uuid,
            each.instance.project_id,
            each.instance.user_id,
            each.instance.created_at or now,
            cell_uuid,
        )
        for each in servers
    ]
    _insert(connection, mappings.TABLE, [mappings.MAPPER.to_row(each) for each in made])


def _insert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, object]]) -> None:
    if rows:
        connection.execute(table.insert(), rows)


__all__ = ["KIND", "delete", "delete_from_cell", "write"]
