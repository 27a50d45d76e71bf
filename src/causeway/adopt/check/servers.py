"""All servers of all cells, in batches: each is read once, as an import reads it, and every check looks at that."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from causeway.adopt.check.findings import Subject, server
from causeway.adopt.check.hosts import Hosts
from causeway.adopt.check.services import AttachedVolume
from causeway.adopt.importing.server_batches import server_batches
from causeway.adopt.nova import NovaCell, NovaCloud, tables
from causeway.adopt.nova.database import Row
from causeway.adopt.nova.narrow import PLACES
from causeway.adopt.nova.objects import UnknownRecord
from causeway.adopt.records import ImportedServer, ServerRows, server_of
from causeway.adopt.records.history import is_under_way
from causeway.adopt.records.server_rows import Surroundings
from causeway.model.migration import Migration

BATCH = 500


@dataclass
class Around:
    """What servers are compared with. ``ports``, ``attachments``: None if the service was not asked, or did not answer.

    ``images_types``: host -> what it keeps local disks as, of hosts whose files were given.
    """

    cloud: NovaCloud
    hosts: Hosts
    surroundings: Surroundings
    images_types: Mapping[str, str] = field(default_factory=dict)
    ports: Collection[str] | None = None
    attachments: Mapping[str, AttachedVolume] | None = None


@dataclass
class ServerRecords:
    """What Nova has of one server. ``has_request``: whether a build request names it; ``shares``: how many it has.

    ``imported``: what an import makes of it; None if it can't, and ``unknown`` says why.
    """

    cell: NovaCell
    rows: ServerRows
    has_request: bool = False
    shares: int = 0
    imported: ImportedServer | None = None
    unknown: str = ""

    @property
    def row(self) -> Row:
        return self.rows.instance

    @property
    def uuid(self) -> str:
        return str(self.row["uuid"])

    @property
    def subject(self) -> Subject:
        return server(self.uuid, self.row["display_name"])

    @property
    def host(self) -> str | None:
        return self.row["host"] or None

    @property
    def moving(self) -> Migration | None:
        """Its migration that has not ended."""
        listed = self.imported.migrations if self.imported is not None else []
        return next((each for each in listed if is_under_way(each)), None)


def read(around: Around, cell: NovaCell, *where: sa.ColumnElement[bool]) -> Iterator[list[ServerRecords]]:
    """The servers of a cell, some at a time: those with a record there that counts (see `copies`)."""
    for batch in server_batches(around.cloud, cell, BATCH, *where):
        uuids = [rows.instance["uuid"] for rows in batch]
        requests = around.cloud.api.rows_of(tables.BUILD_REQUESTS, "instance_uuid", uuids)
        shares = cell.database.rows_of(tables.SHARE_MAPPING, "instance_uuid", uuids)
        found = []
        for rows in batch:
            uuid = rows.instance["uuid"]
            records = ServerRecords(cell, rows, uuid in requests, len(shares.get(uuid, ())))
            try:
                records.imported = server_of(rows, around.surroundings)
            except UnknownRecord as failure:
                records.unknown = failure.message
            found.append(records)
        yield found


def servers_of(around: Around, cell: NovaCell, host: str) -> Iterator[ServerRecords]:
    for batch in read(around, cell, tables.INSTANCES.c.host == host):
        yield from batch


def copies(cloud: NovaCloud, cell: NovaCell) -> Iterator[tuple[Row, Row | None]]:
    """The records in a cell that are no server's as it stands, with the mapping: hidden, or another cell or none is mapped."""
    for rows in cell.database.batches(PLACES, BATCH, PLACES.c.deleted == 0):
        mappings = cloud.api.rows_of(tables.INSTANCE_MAPPINGS, "instance_uuid", [row["uuid"] for row in rows])
        for row in rows:
            (mapping, *_others) = mappings.get(row["uuid"], [None])
            if row["hidden"] or mapping is None or mapping["cell_id"] != cell.row_id:
                yield row, mapping


__all__ = ["BATCH", "Around", "ServerRecords", "copies", "read", "servers_of"]
