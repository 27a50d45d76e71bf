"""Compares mappings with the records of cells: verifies the mapping of a server, and maps servers that have none.

It maps only servers whose single visible record is in the cell. Servers of moves, hidden copies, and servers of which two cells
have visible records are left to `remap`, which looks at the hosts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.host import CellMapping
from causeway.model.instance import Instance
from causeway.scheduler.request import RequestSpec
from causeway.store.api import journal, mappings
from causeway.store.api.mappings import InstanceMapping
from causeway.store.cell import block_devices, instances
from causeway.store.cells import Cells
from causeway.store.database import Database, parts, utcnow

# How many servers are mapped in one transaction.
BATCH = 50


class Verdict(IntEnum):
    """Nova's exit statuses (nova-manage cell_v2 verify_instance)."""

    MAPPED = 0
    NOT_MAPPED = 1
    NO_CELL = 2
    DELETED = 3
    ARCHIVED = 4


def verify(cells: Cells, uuid: str) -> tuple[Verdict, str]:
    """Whether a server is mapped to a cell that has it, and that in a sentence."""
    try:
        mapping = mappings.get(cells.api, uuid)
    except errors.ServerNotFound:
        return Verdict.NOT_MAPPED, f"Server {uuid} is not mapped to a cell."
    if mapping.cell_uuid is None:
        return Verdict.NO_CELL, f"Server {uuid} has a mapping, but no cell: it is being built, or was never built."
    try:
        cell, database = cells.mapping(mapping.cell_uuid), cells.database(mapping.cell_uuid)
    except errors.NotFound:
        return Verdict.NO_CELL, f"Server {uuid} is mapped to cell {mapping.cell_uuid}, which does not exist."
    if instances.find(database, uuid, with_tags=False) is not None:
        return Verdict.MAPPED, f"Server {uuid} is in cell {cell.name} ({cell.uuid})."
    if instances.find(database, uuid, deleted=True, with_tags=False) is not None:
        return (
            Verdict.DELETED,
            f"Server {uuid} of cell {cell.name} is deleted; its mapping is deleted when it is archived.",
        )
    return Verdict.ARCHIVED, f"Server {uuid} is mapped to cell {cell.name}, whose database no longer has it."


@dataclass
class Mapped:
    """``left``: server -> why it was not mapped. ``more``: how many servers could still be mapped."""

    mapped: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    more: int = 0


def map_servers(cells: Cells, cell: CellMapping, *, most: int | None = None) -> Mapped:
    """Maps the servers of a cell that have no mapping, oldest first; deleted ones stay without. May be repeated.

    Raises DatabaseFailed unless all cells answer.
    """
    done = Mapped()
    unmapped = _unmapped(cells, cell)
    elsewhere = _visible_elsewhere(cells, cell, set(unmapped))
    moved = journal.under_work(cells.api, unmapped)
    good = []
    for uuid, (hidden, closed) in unmapped.items():
        if hidden:
            done.left[uuid] = "its record is a hidden copy"
        elif closed or uuid in moved:
            done.left[uuid] = "it is being moved"
        elif uuid in elsewhere:
            done.left[uuid] = f"{elsewhere[uuid]} has a record of it too"
        else:
            good.append(uuid)
    wanted = good[:most]
    done.more = len(good) - len(wanted)
    database = cells.database(cell.uuid)
    for first in range(0, len(wanted), BATCH):
        done.mapped += _map(cells.api, cell, database, wanted[first : first + BATCH])
    return done


def _unmapped(cells: Cells, cell: CellMapping) -> dict[str, tuple[bool, bool]]:
    """server -> whether its record is hidden, and whether a move has closed it."""
    columns = instances.TABLE.c
    query = (
        sa.select(columns.uuid, columns.hidden, columns.closed_by)
        .where(columns.deleted.is_(False))
        .order_by(columns.created_at, columns.id)
    )
    with cells.database(cell.uuid).read() as connection:
        found = {row.uuid: (bool(row.hidden), row.closed_by is not None) for row in connection.execute(query)}
    known = mappings.cells_of(cells.api, list(found))
    return {uuid: record for uuid, record in found.items() if uuid not in known}


def _visible_elsewhere(cells: Cells, cell: CellMapping, uuids: set[str]) -> dict[str, str]:
    """server -> the name of another cell that has a visible record of it."""

    def ask(_cell: CellMapping, database: Database) -> set[str]:
        columns = instances.TABLE.c
        found: set[str] = set()
        with database.read() as connection:
            for part in parts(sorted(uuids)):
                query = sa.select(columns.uuid).where(
                    columns.uuid.in_(part),
                    columns.deleted.is_(False),
                    sa.or_(columns.hidden.is_(None), columns.hidden.is_(False)),
                )
                found |= set(connection.execute(query).scalars())
        return found

    answers = cells.ask_all(ask)
    if answers.down:
        names = ", ".join(sorted(down.name for down in answers.down))
        raise errors.DatabaseFailed(
            f"Nothing was mapped: {names} may have records of the same servers and does not answer."
        )
    return {
        uuid: cells.mapping(other).name
        for other, found in answers.by_cell.items()
        if other != cell.uuid
        for uuid in found
    }


def _map(api: Database, cell: CellMapping, database: Database, uuids: list[str]) -> list[str]:
    found = [mapping_of(database, instances.get(database, uuid), cell.uuid) for uuid in uuids]
    with api.write() as connection:
        # Somebody may have mapped one in the meantime.
        query = sa.select(mappings.TABLE.c.instance_uuid).where(mappings.TABLE.c.instance_uuid.in_(uuids))
        known = set(connection.execute(query).scalars())
        for mapping, spec in found:
            if mapping.instance_uuid not in known:
                mappings.insert_in(connection, mapping)
                mappings.save_spec_if_missing_in(connection, mapping.instance_uuid, spec)
    return uuids


def mapping_of(database: Database, instance: Instance, cell_uuid: str) -> tuple[InstanceMapping, dict[str, Any]]:
    """A mapping for a server whose own was lost, and a request spec with what its record still has of it."""
    uuid, project, user = instance.uuid, instance.project_id, instance.user_id
    on_volume = any(device.is_root and device.is_volume for device in block_devices.of_instance(database, uuid))
    spec = RequestSpec(
        uuid, project, user, instance.flavor, image=instance.image_meta, is_volume_backed=on_volume
    ).to_persist()
    return InstanceMapping(uuid, project, user, instance.created_at or utcnow(), cell_uuid), spec
