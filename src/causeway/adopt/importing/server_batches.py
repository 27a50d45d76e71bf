"""Reads servers from Nova's databases, some at a time, each with all its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from causeway.adopt.nova import NovaCell, NovaCloud, tables
from causeway.adopt.nova.database import NovaDatabase, Row
from causeway.adopt.records.devices import topology_of_host
from causeway.adopt.records.server_rows import ServerRows, Surroundings

_NO_EXTRA: Row = {column.name: None for column in tables.INSTANCE_EXTRA.columns}


def surroundings_of(nova: NovaCloud) -> Surroundings:
    """What all servers refer to."""
    cells = {
        row["host"]: cell.uuid
        for row in nova.api.rows(tables.HOST_MAPPINGS)
        if (cell := nova.cell_of(row["cell_id"])) is not None
    }
    topologies = {}
    for cell in nova.cells:
        for node in cell.database.rows(tables.COMPUTE_NODES, tables.COMPUTE_NODES.c.deleted == 0):
            topology = topology_of_host(node["numa_topology"], f"The NUMA cells of host {node['host']}")
            if topology is not None:
                topologies[node["host"]] = topology
    return Surroundings(cells, topologies, nova.name_template)


def server_batches(
    nova: NovaCloud, cell: NovaCell, size: int, *where: sa.ColumnElement[bool]
) -> Iterator[list[ServerRows]]:
    """The servers of a cell, by the numbers of their rows. Copies that moves keep in other cells are none of them.

    ``where``: conditions on rows of `tables.INSTANCES`.
    """
    table = tables.INSTANCES
    for batch in cell.database.batches(table, size, table.c.deleted == 0, *where):
        rows = {row["uuid"]: row for row in batch if not row["hidden"]}
        mapped = nova.api.rows_of(tables.INSTANCE_MAPPINGS, "instance_uuid", rows)
        yield with_all_rows(
            nova,
            cell,
            {uuid: row for uuid, row in rows.items() if uuid in mapped and mapped[uuid][0]["cell_id"] == cell.row_id},
        )


def with_all_rows(nova: NovaCloud, cell: NovaCell, rows: Mapping[str, Row]) -> list[ServerRows]:
    """The servers whose own rows are given, by uuid, with all others that they have."""
    of, uuids = cell.database, list(rows)
    extras = _by_server(of, tables.INSTANCE_EXTRA, uuids)
    system = _by_server(of, tables.INSTANCE_SYSTEM_METADATA, uuids)
    metadata = _by_server(of, tables.INSTANCE_METADATA, uuids)
    caches = _by_server(of, tables.INSTANCE_INFO_CACHES, uuids)
    vifs = _by_server(of, tables.VIRTUAL_INTERFACES, uuids)
    devices = _by_server(of, tables.BLOCK_DEVICE_MAPPING, uuids)
    pci = _by_server(of, tables.PCI_DEVICES, uuids)
    tags = of.rows_of(tables.TAGS, "resource_id", uuids)
    actions = _by_server(of, tables.INSTANCE_ACTIONS, uuids)
    events = of.rows_of(
        tables.INSTANCE_ACTIONS_EVENTS, "action_id", [each["id"] for listed in actions.values() for each in listed]
    )
    faults = _by_server(of, tables.INSTANCE_FAULTS, uuids)
    specs = nova.api.rows_of(tables.REQUEST_SPECS, "instance_uuid", uuids)
    moves = [_by_server(each.database, tables.MIGRATIONS, uuids) for each in nova.cells if not each.is_cell0]
    return [
        ServerRows(
            instance=row,
            extra=next(iter(extras.get(uuid, ())), _NO_EXTRA),
            system_metadata=_pairs(system.get(uuid, [])),
            metadata=_pairs(metadata.get(uuid, [])),
            tags=[each["tag"] for each in tags.get(uuid, [])],
            block_devices=devices.get(uuid, []),
            vif_tags={each["uuid"]: each["tag"] for each in vifs.get(uuid, []) if each["tag"]},
            network_info=next((each["network_info"] for each in caches.get(uuid, ())), None),
            pci_devices=pci.get(uuid, []),
            request_spec=next((each["spec"] for each in specs.get(uuid, ())), None),
            actions=actions.get(uuid, []),
            events={each["id"]: events[each["id"]] for each in actions.get(uuid, []) if each["id"] in events},
            fault=faults[uuid][-1] if uuid in faults else None,
            migrations=[each for found in moves for each in found.get(uuid, [])],
        )
        for uuid, row in rows.items()
    ]


def _by_server(database: NovaDatabase, table: Any, uuids: list[str]) -> dict[str, list[Row]]:
    return database.rows_of(table, "instance_uuid", uuids)


def _pairs(rows: list[Row]) -> dict[str, str]:
    return {row["key"]: row["value"] for row in rows if row["value"] is not None}


__all__ = ["server_batches", "surroundings_of", "with_all_rows"]
