"""Reads the servers of a cell that a drain moves in bulk, with only the columns that decide how and where they go."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway.hardware.port_devices import requests_of_ports
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.pci import InstancePCIRequest
from causeway.model.states import TaskState, VmState
from causeway.store.cell.block_devices import TABLE as DEVICES
from causeway.store.cell.hosts import NODES
from causeway.store.cell.instances import TABLE
from causeway.store.database import Database, parts

_PAGE = 2000
_COLUMNS = (
    TABLE.c.id,
    TABLE.c.uuid,
    TABLE.c.display_name,
    TABLE.c.project_id,
    TABLE.c.host,
    TABLE.c.availability_zone,
    TABLE.c.vm_state,
    TABLE.c.task_state,
    TABLE.c.locked,
    TABLE.c.flavor,
    TABLE.c.image_meta,
    TABLE.c.network_info,
    TABLE.c.pci_requests,
    TABLE.c.metadata,
)
_DEVICE_COLUMNS = (
    DEVICES.c.uuid,
    DEVICES.c.instance_uuid,
    DEVICES.c.source_type,
    DEVICES.c.destination_type,
    DEVICES.c.boot_index,
    DEVICES.c.guest_format,
    DEVICES.c.volume_size,
)


@dataclass
class Resident:
    """A server that is not deleted. ``vnic_types``: of its ports; ``port_devices``: the devices that these need.

    ``devices``: its block devices, with only the fields that say where their data is.
    """

    uuid: str
    name: str
    project_id: str
    host: str | None
    zone: str | None
    vm_state: VmState
    task_state: TaskState | None
    locked: bool
    flavor: Flavor
    image: ImageMeta | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    vnic_types: list[str] = field(default_factory=list)
    port_devices: list[InstancePCIRequest] = field(default_factory=list)
    devices: list[BlockDevice] = field(default_factory=list)


def read(
    database: Database,
    *,
    everybody: bool = False,
    hosts: Collection[str] = (),
    projects: Collection[str] = (),
    uuids: Collection[str] = (),
) -> list[Resident]:
    """The servers that are on one of the hosts, in one of the projects, or named, without hidden copies.

    ``everybody``: all servers.
    """
    conditions: list[sa.ColumnElement[bool]] = [sa.true()] if everybody else []
    if not everybody:
        for column, wanted in ((TABLE.c.host, hosts), (TABLE.c.project_id, projects), (TABLE.c.uuid, uuids)):
            conditions += [column.in_(part) for part in parts(sorted(wanted))]
    found: dict[str, Resident] = {}
    for condition in conditions:
        for page in _pages(database, condition):
            found |= {resident.uuid: resident for resident in page}
    return list(found.values())


def capabilities(database: Database) -> dict[str, dict[str, Any]]:
    """host -> capabilities of its hypervisor."""
    with database.read() as connection:
        rows = connection.execute(sa.select(NODES.c.host, NODES.c.capabilities))
        return {row.host: row.capabilities or {} for row in rows}


def _pages(database: Database, condition: sa.ColumnElement[bool]) -> Iterator[list[Resident]]:
    last = 0
    while True:
        query = (
            sa.select(*_COLUMNS)
            .where(condition, TABLE.c.deleted.is_(False), sa.or_(TABLE.c.hidden.is_(None), TABLE.c.hidden.is_(False)))
            .where(TABLE.c.id > last)
            .order_by(TABLE.c.id)
            .limit(_PAGE)
        )
        with database.read() as connection:
            rows = connection.execute(query).all()
            devices = _devices(connection, [row.uuid for row in rows])
        yield [_resident(row, devices.get(row.uuid, [])) for row in rows]
        if len(rows) < _PAGE:
            return
        last = rows[-1].id


def _resident(row: sa.Row[Any], devices: list[BlockDevice]) -> Resident:
    return Resident(
        uuid=row.uuid,
        name=row.display_name,
        project_id=row.project_id,
        host=row.host,
        zone=row.availability_zone,
        vm_state=VmState(row.vm_state),
        task_state=None if row.task_state is None else TaskState(row.task_state),
        locked=row.locked,
        flavor=msgspec.convert(row.flavor, Flavor),
        image=None if row.image_meta is None else msgspec.convert(row.image_meta, ImageMeta),
        metadata=row._mapping[TABLE.c.metadata],
        vnic_types=[vif.get("vnic_type", "normal") for vif in row.network_info],
        port_devices=requests_of_ports(
            {vif["id"] for vif in row.network_info}, msgspec.convert(row.pci_requests or [], list[InstancePCIRequest])
        ),
        devices=devices,
    )


def _devices(connection: sa.Connection, uuids: list[str]) -> dict[str, list[BlockDevice]]:
    found: dict[str, list[BlockDevice]] = {}
    for part in parts(uuids):
        query = sa.select(*_DEVICE_COLUMNS).where(DEVICES.c.instance_uuid.in_(part), DEVICES.c.deleted.is_(False))
        for row in connection.execute(query.order_by(DEVICES.c.id)):
            found.setdefault(row.instance_uuid, []).append(BlockDevice(**row._mapping))
    return found
