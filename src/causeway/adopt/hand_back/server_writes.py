"""Writes one server into a database of a cell of Nova's, in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from causeway.adopt.hand_back import rows
from causeway.adopt.hand_back.network_info import network_info
from causeway.adopt.hand_back.nova_objects import NovaObjects, pci_requests
from causeway.adopt.nova import NovaDatabase, tables
from causeway.adopt.records import ImportedServer
from causeway.model.pci import PciDevice, PciDeviceStatus
from causeway.model.states import VmState
from causeway.store.database import utcnow

# Of a server that is deleted, what Nova marks as deleted with it.
_DELETED_WITH = (
    tables.INSTANCE_EXTRA, tables.INSTANCE_INFO_CACHES, tables.INSTANCE_METADATA, tables.INSTANCE_FAULTS,
    tables.BLOCK_DEVICE_MAPPING, tables.VIRTUAL_INTERFACES,
)  # fmt: skip


def write(of: NovaDatabase, server: ImportedServer, compute_id: int | None, objects: NovaObjects) -> None:
    """Writes all records of a server. ``compute_id``: Nova's number of its compute node; None: it is on no host."""
    instance, uuid = server.instance, server.instance.uuid
    with of.write() as connection:
        at = _Rows(of, connection)
        at.save(tables.INSTANCES, {"uuid": uuid}, rows.instance_row(instance, compute_id))
        at.save(
            tables.INSTANCE_EXTRA,
            {"instance_uuid": uuid},
            {
                "flavor": objects.flavors(instance.flavor),
                "numa_topology": objects.numa_topology(instance.numa_topology, uuid),
                "pci_requests": pci_requests(instance.pci_requests),
                "keypairs": objects.key_pairs(instance.keypairs),
                "trusted_certs": objects.trusted_certificates(instance.trusted_image_certificates),
                "migration_context": None,
                **rows.LIVING,
            },
        )
        before = at.one(tables.INSTANCE_INFO_CACHES, {"instance_uuid": uuid}, "network_info")
        at.save(
            tables.INSTANCE_INFO_CACHES,
            {"instance_uuid": uuid},
            {"network_info": network_info(before, instance.network_info), "updated_at": utcnow(), **rows.LIVING},
        )
        at.replace_pairs(tables.INSTANCE_SYSTEM_METADATA, uuid, rows.system_metadata(instance))
        at.replace_pairs(tables.INSTANCE_METADATA, uuid, instance.metadata)
        at.replace_tags(uuid, instance.tags)
        for device in server.block_devices:
            at.save(tables.BLOCK_DEVICE_MAPPING, {"uuid": device.uuid}, rows.device_row(device))
        at.mark_others(tables.BLOCK_DEVICE_MAPPING, uuid, [device.uuid for device in server.block_devices])
        for vif in instance.network_info:
            found = {"address": f"{vif.address}/{vif.id}", "tag": vif.tag, **rows.LIVING}
            at.release_port(found["address"], uuid)
            at.save(tables.VIRTUAL_INTERFACES, {"uuid": vif.id, "instance_uuid": uuid}, found)
        at.mark_others(tables.VIRTUAL_INTERFACES, uuid, [vif.id for vif in instance.network_info])
        at.hold_devices(uuid, compute_id, instance.pci_devices)
        _write_history(at, server)


def _write_history(at: _Rows, server: ImportedServer) -> None:
    uuid = server.instance.uuid
    known = at.pairs(tables.INSTANCE_ACTIONS, uuid, "request_id", "action")
    for action in server.actions:
        values = rows.action_row(action)
        key = {name: values[name] for name in ("instance_uuid", "request_id", "action")}
        number = at.save(tables.INSTANCE_ACTIONS, key, values)
        if (action.request_id, action.action) not in known:
            for event in action.events:
                at.insert(tables.INSTANCE_ACTIONS_EVENTS, rows.event_row(event, number))
    for migration in server.migrations:
        at.save(tables.MIGRATIONS, {"uuid": migration.uuid}, rows.migration_row(migration))
    if server.fault is not None:
        values = rows.fault_row(server.fault, uuid)
        at.save(
            tables.INSTANCE_FAULTS, {name: values[name] for name in ("instance_uuid", "code", "created_at")}, values
        )


def mark_deleted(of: NovaDatabase, uuid: str) -> None:
    """Marks a server and what it has as deleted, as Nova does; its rows stay. May be repeated."""
    with of.write() as connection:
        at = _Rows(of, connection)
        at.mark_others(tables.INSTANCES, uuid, [], key="uuid")
        gone = {"vm_state": VmState.DELETED.value, "task_state": None}
        connection.execute(sa.update(tables.INSTANCES).where(tables.INSTANCES.c.uuid == uuid).values(gone))
        for table in _DELETED_WITH:
            at.mark_others(table, uuid, [])
        at.hold_devices(uuid, None, [])


class _Rows:
    """The rows of a transaction. Columns that the release lacks are not written."""

    def __init__(self, of: NovaDatabase, connection: sa.Connection) -> None:
        self._of, self._connection = of, connection

    def one(self, table: sa.TableClause, key: Mapping[str, Any], column: str) -> Any:
        query = sa.select(table.c[column]).where(*_equal(table, key)).order_by(table.c.id.desc()).limit(1)
        return self._connection.scalar(query)

    def save(self, table: sa.TableClause, key: Mapping[str, Any], values: Mapping[str, Any]) -> int:
        """Updates the newest row with this key, or inserts one. Returns its number."""
        number = self.one(table, key, "id")
        if number is None:
            return self.insert(table, {**key, **values})
        known = self._of.known(table, values)
        self._connection.execute(sa.update(table).where(table.c.id == number).values(known))
        return int(number)

    def insert(self, table: sa.TableClause, values: Mapping[str, Any]) -> int:
        """Returns the number of the new row."""
        known = self._of.known(table, {"deleted": 0, "created_at": utcnow(), **values})
        statement = sa.insert(table).values(known)
        if self._connection.dialect.name == "postgresql":
            return int(self._connection.execute(statement.returning(table.c.id)).scalar_one())
        return int(self._connection.execute(statement).lastrowid)

    def pairs(self, table: sa.TableClause, uuid: str, first: str, second: str) -> set[tuple[Any, Any]]:
        query = sa.select(table.c[first], table.c[second]).where(table.c.instance_uuid == uuid)
        return {(row[0], row[1]) for row in self._connection.execute(query)}

    def replace_pairs(self, table: sa.TableClause, uuid: str, pairs: Mapping[str, str]) -> None:
        self._connection.execute(sa.delete(table).where(table.c.instance_uuid == uuid))
        for key, value in pairs.items():
            known = {"instance_uuid": uuid, "key": key, "value": value, "deleted": 0, "created_at": utcnow()}
            self._connection.execute(sa.insert(table).values(self._of.known(table, known)))

    def replace_tags(self, uuid: str, tags: Collection[str]) -> None:
        table = tables.TAGS
        self._connection.execute(sa.delete(table).where(table.c.resource_id == uuid))
        # To MySQL and MariaDB tags are the same that differ in case only: Nova has one of them.
        insert = sa.insert(table).prefix_with("IGNORE", dialect="mysql").prefix_with("IGNORE", dialect="mariadb")
        for tag in dict.fromkeys(self._of.kept(each) for each in tags):
            self._connection.execute(insert.values(resource_id=uuid, tag=tag))

    def mark_others(
        self, table: sa.TableClause, uuid: str, kept: Collection[str], *, key: str = "instance_uuid"
    ) -> None:
        """Marks the rows of a server as deleted, except those with the ``kept`` uuids."""
        if not self._of.has(table):
            return
        where = [table.c[key] == uuid]
        if kept:
            where.append(table.c.uuid.not_in(list(kept)))
        self._mark(table, *where)

    def release_port(self, address: str, uuid: str) -> None:
        """Marks other servers' rows of a port as deleted: no two may have it, and they may be written later than this one."""
        table = tables.VIRTUAL_INTERFACES
        self._mark(table, table.c.address == address, table.c.instance_uuid != uuid)

    def _mark(self, table: sa.TableClause, *where: sa.ColumnElement[bool]) -> None:
        """Marks rows as deleted, as Nova does."""
        values = self._of.known(table, {"deleted": table.c.id, "deleted_at": rows.seconds(utcnow())})
        self._connection.execute(sa.update(table).where(table.c.deleted == 0, *where).values(values))

    def hold_devices(self, uuid: str, compute_id: int | None, devices: Collection[PciDevice]) -> None:
        """Notes which devices of its node the server has; others that it had are free."""
        table = tables.PCI_DEVICES
        free = {"status": PciDeviceStatus.AVAILABLE.value, "instance_uuid": None, "request_id": None}
        self._connection.execute(sa.update(table).where(table.c.instance_uuid == uuid).values(free))
        for address, values in rows.held_devices(devices).items():
            where = (table.c.compute_node_id == compute_id, table.c.address == address)
            self._connection.execute(sa.update(table).where(*where).values({**values, "instance_uuid": uuid}))


def _equal(table: sa.TableClause, values: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    return [table.c[name] == value for name, value in values.items()]


__all__ = ["mark_deleted", "write"]
