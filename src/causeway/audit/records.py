"""Reads the databases: whole lists, some columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway.audit.services import AuditServices
from causeway.audit.snapshot import Impostor, OpenEvent, Record
from causeway.model.drains import AT_REST, Drain, DrainServer, DrainState, drain_of
from causeway.model.flavor import Flavor
from causeway.model.host import CellMapping, ComputeNode
from causeway.model.image import ImageMeta
from causeway.model.instance import MigrationContext
from causeway.model.migration import Migration
from causeway.model.numa import InstanceNUMATopology
from causeway.model.operations import BUILD, Operation
from causeway.model.pci import PciDevice
from causeway.model.sagas import ENDED, SagaState
from causeway.model.shelved import IMAGE
from causeway.model.states import MIGRATION_ENDED, SHELVED, PowerState, TaskState, VmState
from causeway.store import own_nodes
from causeway.store.api import build_requests, drains, journal, mappings, migrations
from causeway.store.api.mappings import InstanceMapping
from causeway.store.cell import actions, block_devices, hosts, instances
from causeway.store.database import Database, utcnow

# Databases accept only so many values in one statement.
CHUNK = 500


@dataclass
class CellRecords:
    """What one cell's database says."""

    records: list[Record] = field(default_factory=list)
    open_events: list[OpenEvent] = field(default_factory=list)
    # The nodes that hosts reported, and host -> the uuid of the node that is its own.
    reported: list[ComputeNode] = field(default_factory=list)
    nodes: dict[str, str] = field(default_factory=dict)
    # host -> whether its compute reports
    computes: dict[str, bool] = field(default_factory=dict)
    # host -> the drain that closed it
    closed: dict[str, str] = field(default_factory=dict)


@dataclass
class Records:
    """What all databases say."""

    cells: dict[str, CellMapping]
    impostors: list[Impostor]
    by_cell: dict[str, CellRecords]
    down_cells: set[str]
    mappings: dict[str, InstanceMapping]
    build_requests: set[str]
    migrations: dict[str, Migration]
    operations: list[Operation]
    drains: dict[str, Drain]
    drained: list[DrainServer]
    # The requests of drains that the journal knows.
    requests: set[str]

    @property
    def by_server(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        for cell in self.by_cell.values():
            for record in cell.records:
                found.setdefault(record.uuid, []).append(record)
        return found

    def fingerprints(self) -> dict[str, object]:
        """Values that change with all work on a server, and when a migration or move begins or ends."""
        operations: dict[str, list[object]] = {}
        for operation in self.operations:
            now = operation.id, operation.state, operation.epoch, operation.pivoted
            operations.setdefault(operation.instance_uuid, []).append(now)
        found: dict[str, object] = {uuid: migration.status for uuid, migration in self.migrations.items()}
        rows: dict[str, list[object]] = {}
        for row in self.drained:
            rows.setdefault(row.drain_id, []).append((row.instance_uuid, row.state, row.request_id))
        for drain in self.drains.values():
            found[f"drain {drain.id}"] = (drain.state, drain.epoch, list(drain.closed), rows.get(drain.id))
        records = self.by_server
        for uuid in {*records, *operations, *self.mappings, *self.build_requests}:
            mapping = self.mappings.get(uuid)
            found[uuid] = (
                mapping and (mapping.cell_uuid, mapping.queued_for_delete),
                uuid in self.build_requests,
                [_fingerprint(record) for record in records.get(uuid, [])],
                operations.get(uuid),
            )
        return found


def _fingerprint(record: Record) -> object:
    states = (record.host, record.vm_state, record.task_state, record.power_state, record.hidden, record.updated_at)
    return (record.cell_uuid, *states, sorted(record.attachment_ids), record.port_ids)


def read_records(services: AuditServices) -> Records:
    """Reads the API database and every cell's. The mappings, which decide, are read last."""
    services.cells.refresh()
    down_time: float = services.conf.service_down_time
    answers = services.cells.ask_all(lambda cell, database: _read_cell(cell, database, down_time), without_failed=True)
    impostors = _keep_own_nodes(services.api, answers.by_cell)
    found, operations = _migrations_and_operations(services.api)
    building = _uuids(services.api, sa.select(build_requests.TABLE.c.instance_uuid))
    mapped = {each.instance_uuid: each for each in mappings.of_project(services.api, None)}
    seen = {record.uuid for cell in answers.by_cell.values() for record in cell.records}
    mapped.update(mappings_of(services.api, seen - mapped.keys()))
    of_drains, drained, requests = _drains(services.api, answers.by_cell.values())
    return Records(
        drains=of_drains,
        drained=drained,
        requests=requests,
        cells={cell.uuid: cell for cell in services.cells.mappings()},
        impostors=impostors,
        by_cell=answers.by_cell,
        down_cells={cell.uuid for cell in answers.down},
        mappings=mapped,
        build_requests=building,
        migrations=found,
        operations=operations,
    )


def _keep_own_nodes(api: Database, by_cell: dict[str, CellRecords]) -> list[Impostor]:
    """Sets the nodes that are their hosts' own, deletes hosts that have the name of a host elsewhere, and returns the others."""
    own = own_nodes.of_all(api)
    reported = [(cell_uuid, node) for cell_uuid, cell in by_cell.items() for node in cell.reported]
    believed = {(cell_uuid, node.host, node.uuid) for cell_uuid, node in own.among(reported, lambda one: one)}
    for cell_uuid, host, node_uuid in believed:
        by_cell[cell_uuid].nodes[host] = node_uuid
    for cell_uuid, cell in by_cell.items():
        cell.computes = {host: is_up for host, is_up in cell.computes.items() if own.is_of_cell(cell_uuid, host)}
    return [
        Impostor(node.host, cell_uuid, node.uuid, own.owner(node.uuid))
        for cell_uuid, node in reported
        if (cell_uuid, node.host, node.uuid) not in believed
    ]


def _uuids(database: Database, query: sa.Select[Any]) -> set[str]:
    with database.read() as connection:
        return set(connection.execute(query).scalars())


def _migrations_and_operations(api: Database) -> tuple[dict[str, Migration], list[Operation]]:
    open_migration = migrations.TABLE.c.status.not_in([status.value for status in MIGRATION_ENDED])
    of_open = journal.OPERATIONS.c.migration_uuid.in_(sa.select(migrations.TABLE.c.uuid).where(open_migration))
    not_ended = journal.OPERATIONS.c.state.not_in([state.value for state in ENDED])
    with api.read() as connection:
        rows = connection.execute(sa.select(*migrations.MAPPER.columns).where(open_migration))
        found = {migration.uuid: migration for migration in map(migrations.MAPPER.from_row, rows)}
        query = sa.select(*journal.OPERATION.columns).where(sa.or_(of_open, not_ended))
        query = query.order_by(journal.OPERATIONS.c.started_at, journal.OPERATIONS.c.id)
        operations = [journal.OPERATION.from_row(row) for row in connection.execute(query)]
    return found, operations


def _drains(api: Database, cells: Iterable[CellRecords]) -> tuple[dict[str, Drain], list[DrainServer], set[str]]:
    """The drains that have not ended, and those that something refers to; their servers; their requests in the journal."""
    open_states = [DrainState.PLANNED, *(state for state in DrainState if state not in AT_REST)]
    found = {drain.id: drain for drain in drains.search(api, states=open_states)}
    drained = drains.under_work(api)
    named = {row.drain_id for row in drained} | {drain for cell in cells for drain in cell.closed.values()}
    for drain_id in named - found.keys():
        drain = drains.find(api, drain_id)
        if drain is not None:
            found[drain_id] = drain
    asked = {row.instance_uuid: row.request_id for row in drained if row.request_id is not None}
    return found, drained, set(journal.of_requests(api, asked))


def _read_cell(cell: CellMapping, database: Database, down_time: float) -> CellRecords:
    with database.read() as connection:
        devices = _devices(connection)
        records = [_record(cell, row, devices) for row in connection.execute(_RECORDS)]
        events = [OpenEvent(cell.uuid, *row) for row in connection.execute(_OPEN_EVENTS)]
    now = utcnow()
    computes = hosts.list_services(database, binary="nova-compute")
    return CellRecords(
        records=records,
        open_events=events,
        reported=hosts.list_nodes(database),
        computes={service.host: hosts.is_up(service, now, down_time) for service in computes},
        closed={
            service.host: drain
            for service in computes
            if service.disabled and (drain := drain_of(service.disabled_reason)) is not None
        },
    )


_SERVERS = instances.TABLE.c
_RECORDS = sa.select(
    _SERVERS.uuid,
    _SERVERS.project_id,
    _SERVERS.user_id,
    _SERVERS.host,
    _SERVERS.vm_state,
    _SERVERS.task_state,
    _SERVERS.power_state,
    _SERVERS.flavor,
    _SERVERS.old_vm_state,
    _SERVERS.hidden,
    _SERVERS.network_info,
    _SERVERS.image_meta,
    _SERVERS.numa_topology,
    _SERVERS.pci_devices,
    _SERVERS.migration_context,
    _SERVERS.system_metadata,
    _SERVERS.created_at,
    # A new server has no time of change.
    sa.func.coalesce(_SERVERS.updated_at, _SERVERS.created_at).label("updated_at"),
).where(_SERVERS.deleted.is_(False))

_OPEN_EVENTS = (
    sa.select(
        actions.EVENTS.c.id,
        actions.ACTIONS.c.instance_uuid,
        actions.ACTIONS.c.action,
        actions.EVENTS.c.event,
        actions.EVENTS.c.start_time,
        actions.EVENTS.c.host,
    )
    .join_from(actions.EVENTS, actions.ACTIONS, actions.EVENTS.c.action_id == actions.ACTIONS.c.id)
    .where(actions.EVENTS.c.finish_time.is_(None))
)


def _devices(connection: sa.Connection) -> dict[str, list[Any]]:
    columns = block_devices.MAPPER.columns
    query = sa.select(*columns).where(block_devices.TABLE.c.deleted.is_(False)).order_by(block_devices.TABLE.c.id)
    found: dict[str, list[Any]] = {}
    for row in connection.execute(query):
        found.setdefault(row.instance_uuid, []).append(block_devices.MAPPER.from_row(row))
    return found


def _record(cell: CellMapping, row: sa.Row[Any], devices: dict[str, list[Any]]) -> Record:
    return Record(
        uuid=row.uuid,
        cell_uuid=cell.uuid,
        project_id=row.project_id,
        user_id=row.user_id,
        host=row.host,
        vm_state=VmState(row.vm_state),
        task_state=TaskState(row.task_state) if row.task_state else None,
        power_state=PowerState(row.power_state),
        flavor=msgspec.convert(row.flavor, Flavor),
        old_vm_state=VmState(row.old_vm_state) if row.old_vm_state else None,
        hidden=bool(row.hidden),
        port_ids=[vif["id"] for vif in row.network_info or []],
        created_at=row.created_at,
        updated_at=row.updated_at,
        block_devices=devices.get(row.uuid, []),
        image_meta=msgspec.convert(row.image_meta, ImageMeta | None),
        numa_topology=msgspec.convert(row.numa_topology, InstanceNUMATopology | None),
        pci_devices=msgspec.convert(row.pci_devices, list[PciDevice]),
        migration_context=msgspec.convert(row.migration_context, MigrationContext | None),
        shelved_image_id=row.system_metadata.get(IMAGE) if row.vm_state in SHELVED else None,
    )


def _chunks(uuids: Iterable[str]) -> Iterator[list[str]]:
    ordered = sorted(uuids)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start : start + CHUNK]


def mappings_of(api: Database, uuids: Iterable[str]) -> dict[str, InstanceMapping]:
    """The mappings of these servers, deleted ones too."""
    found = {}
    for chunk in _chunks(uuids):
        query = sa.select(*mappings.MAPPER.columns).where(mappings.TABLE.c.instance_uuid.in_(chunk))
        with api.read() as connection:
            rows = [mappings.MAPPER.from_row(row) for row in connection.execute(query)]
        found.update({mapping.instance_uuid: mapping for mapping in rows})
    return found


def migrations_of(api: Database, uuids: Iterable[str]) -> dict[str, Migration]:
    """The migrations among these uuids, ended ones too."""
    found = {}
    for chunk in _chunks(uuids):
        query = sa.select(*migrations.MAPPER.columns).where(migrations.TABLE.c.uuid.in_(chunk))
        with api.read() as connection:
            rows = [migrations.MAPPER.from_row(row) for row in connection.execute(query)]
        found.update({migration.uuid: migration for migration in rows})
    return found


def never_built_among(api: Database, uuids: Iterable[str]) -> set[str]:
    """Those of the uuids, which have no mapping, that are servers whose builds failed: deleted before they had a cell."""
    moves = journal.OPERATIONS.c
    found: set[str] = set()
    for chunk in _chunks(uuids):
        failed_build = (moves.recipe == BUILD, moves.state == SagaState.FAILED.value)
        found |= _uuids(api, sa.select(moves.instance_uuid).where(moves.instance_uuid.in_(chunk), *failed_build))
    return found


def deleted_among(services: AuditServices, uuids: Iterable[str]) -> set[str]:
    """Those of the uuids that are deleted servers of any cell."""
    wanted = list(_chunks(uuids))

    def ask(_cell: CellMapping, database: Database) -> set[str]:
        found: set[str] = set()
        for chunk in wanted:
            query = sa.select(_SERVERS.uuid).where(_SERVERS.uuid.in_(chunk), _SERVERS.deleted.is_(True))
            found |= _uuids(database, query)
        return found

    return set().union(*services.cells.ask_all(ask).by_cell.values()) if wanted else set()
