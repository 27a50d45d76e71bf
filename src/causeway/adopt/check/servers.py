"""All servers of all cells, in batches: what is recorded of each is read once, and every check looks at it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from causeway.adopt.check.findings import Subject, server
from causeway.adopt.check.hosts import Hosts
from causeway.adopt.check.rows import EXTRAS, STANDING
from causeway.adopt.check.services import AttachedVolume
from causeway.adopt.nova import NovaCell, NovaCloud, tables
from causeway.adopt.nova.database import Row

BATCH = 500
# Migrations that have ended, as Nova counts them. One that is finished waits for confirm or revert.
ENDED = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")


@dataclass
class Around:
    """What servers are compared with. ``ports``, ``attachments``: None if the service was not asked, or did not answer.

    ``images_types``: host -> what it keeps local disks as, of hosts whose files were given.
    """

    cloud: NovaCloud
    hosts: Hosts
    images_types: Mapping[str, str] = field(default_factory=dict)
    ports: Collection[str] | None = None
    attachments: Mapping[str, AttachedVolume] | None = None


@dataclass
class ServerRecords:
    """What Nova has of one server. ``has_request``: whether a build request names it. ``moving``: its migration under way."""

    cell: NovaCell
    row: Row
    mapping: Row | None = None
    extra: Row | None = None
    has_request: bool = False
    request_spec: Row | None = None
    devices: list[Row] = field(default_factory=list)
    system_metadata: dict[str, str] = field(default_factory=dict)
    network_info: str | None = None
    shares: int = 0
    moving: Row | None = None

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
    def is_hidden(self) -> bool:
        return bool(self.row["hidden"])


def read(cloud: NovaCloud, cell: NovaCell) -> Iterator[list[ServerRecords]]:
    """The servers in a cell's records that are not deleted, some at a time."""
    migrations, of_cell = tables.MIGRATIONS, cell.database
    under_way = {
        row["instance_uuid"]: row
        for row in of_cell.rows(migrations, migrations.c.deleted == 0, migrations.c.status.not_in(ENDED))
    }
    for rows in of_cell.batches(STANDING, BATCH, STANDING.c.deleted == 0):
        uuids = [row["uuid"] for row in rows]

        def of(table: Any, uuids: list[str] = uuids, key: str = "instance_uuid") -> dict[Any, list[Row]]:
            return of_cell.rows_of(table, key, uuids)

        extras, devices = of(EXTRAS), of(tables.BLOCK_DEVICE_MAPPING)
        system, shares = of(tables.INSTANCE_SYSTEM_METADATA), of(tables.SHARE_MAPPING)
        caches = of(tables.INSTANCE_INFO_CACHES)
        mappings = cloud.api.rows_of(tables.INSTANCE_MAPPINGS, "instance_uuid", uuids)
        requests = cloud.api.rows_of(tables.BUILD_REQUESTS, "instance_uuid", uuids)
        specs = cloud.api.rows_of(tables.REQUEST_SPECS, "instance_uuid", uuids)
        yield [
            ServerRecords(
                cell,
                row,
                mapping=_first(mappings, row["uuid"]),
                extra=_first(extras, row["uuid"]),
                has_request=row["uuid"] in requests,
                request_spec=_first(specs, row["uuid"]),
                devices=devices.get(row["uuid"], []),
                system_metadata={each["key"]: each["value"] or "" for each in system.get(row["uuid"], ())},
                network_info=(_first(caches, row["uuid"]) or {}).get("network_info"),
                shares=len(shares.get(row["uuid"], ())),
                moving=under_way.get(row["uuid"]),
            )
            for row in rows
        ]


def _first(found: Mapping[Any, list[Row]], uuid: str) -> Row | None:
    listed = found.get(uuid)
    return listed[0] if listed else None


__all__ = ["BATCH", "ENDED", "Around", "ServerRecords", "read"]
