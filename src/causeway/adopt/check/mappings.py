"""Mappings and build requests of servers of which no cell has a record."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.adopt.check.codes import found
from causeway.adopt.check.findings import Finding, Kind, Subject, server
from causeway.adopt.check.places import servers_with
from causeway.adopt.check.servers import BATCH
from causeway.adopt.nova import NovaCloud, tables
from causeway.adopt.nova.database import Row
from causeway.adopt.nova.narrow import UUIDS

_REQUESTS = Subject(Kind.DEPLOYMENT, "build requests")
_MAPPINGS = Subject(Kind.DEPLOYMENT, "instance mappings")
_SHOWN = 3


class _Some:
    """A number of servers, the first of which are named."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, uuid: str) -> None:
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(uuid)

    def __str__(self) -> str:
        return f"{self.count}: {', '.join(self.first)}{', ...' * (self.count > _SHOWN)}."


def of_mappings(cloud: NovaCloud) -> Iterator[Finding]:
    never_built, gone = _Some(), _Some()
    for rows in cloud.api.batches(tables.INSTANCE_MAPPINGS, BATCH):
        uuids = [row["instance_uuid"] for row in rows]
        requests = cloud.api.rows_of(tables.BUILD_REQUESTS, "instance_uuid", uuids)
        recorded = _recorded(cloud, rows)
        unknown = [row for row in rows if row["instance_uuid"] not in recorded]
        # A record in another cell than the one that is mapped has a finding of its own.
        elsewhere = servers_with(cloud, [row["instance_uuid"] for row in unknown])
        for row in unknown:
            uuid = row["instance_uuid"]
            if uuid in elsewhere:
                continue
            if uuid in requests:
                yield found(server(uuid, None), "building", "It has a build request, and no cell has a record of it.")
            elif row["cell_id"] is None:
                never_built.add(uuid)
            elif cloud.cell_of(row["cell_id"]) is None:
                what = "It is mapped to a cell that does not exist."
                yield found(server(uuid, None), "mapping_cell", what)
            elif not row["queued_for_delete"]:
                gone.add(uuid)
    if never_built.count:
        yield found(_MAPPINGS, "mapping_without_cell", str(never_built))
    if gone.count:
        yield found(_MAPPINGS, "mapping_without_server", str(gone))


def _recorded(cloud: NovaCloud, rows: list[Row]) -> set[str]:
    """The servers of which their own cell has a record."""
    uuids: dict[int | None, list[str]] = {}
    for row in rows:
        uuids.setdefault(row["cell_id"], []).append(row["instance_uuid"])
    recorded: set[str] = set()
    for row_id, listed in uuids.items():
        cell = cloud.cell_of(row_id)
        if cell is not None:
            recorded |= cell.database.rows_of(UUIDS, "uuid", listed).keys()
    return recorded


def of_requests(cloud: NovaCloud) -> Iterator[Finding]:
    """Build requests without a mapping."""
    alone = _Some()
    for rows in cloud.api.batches(tables.BUILD_REQUESTS, BATCH):
        uuids = [row["instance_uuid"] for row in rows]
        mapped = cloud.api.rows_of(tables.INSTANCE_MAPPINGS, "instance_uuid", uuids)
        for uuid in uuids:
            if uuid not in mapped:
                alone.add(uuid)
    if alone.count:
        yield found(_REQUESTS, "request_without_server", str(alone))


__all__ = ["of_mappings", "of_requests"]
