"""What is left of a server in a cell: looked up where it would be, not where the API says it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from causeway.cli.demo.cloud import Cloud

VOLUME_MICROVERSION = "volume 3.71"


@dataclass(frozen=True)
class Counted:
    """Names of columns of migrations' records."""

    source_compute: str
    dest_compute: str
    disk_processed_bytes: int | None
    memory_processed_bytes: int | None


@dataclass
class Traces:
    """Looks for one server. ``admin`` is an administrator's connection to the cloud."""

    cloud: Cloud
    admin: Any
    server: str
    migrations: list[str]

    def records(self, cell: str) -> list[str]:
        """Rows of the cell's database that name the server in any column, and rows whose parent is gone: ``table: n``."""
        engine = sa.create_engine(self.cloud.database(cell))
        try:
            tables = sa.MetaData()
            tables.reflect(engine)
            with engine.connect() as connection:
                return [*self._rows(connection, tables.sorted_tables), *_orphans(connection)]
        finally:
            engine.dispose()

    def _rows(self, connection: sa.Connection, tables: list[sa.Table]) -> Iterator[str]:
        for table in tables:
            named = [sa.cast(column, sa.String(4000)).like(f"%{self.server}%") for column in table.columns]
            rows = connection.execute(sa.select(sa.func.count()).select_from(table).where(sa.or_(*named))).scalar_one()
            if rows:
                yield f"{table.name}: {rows}"

    def files(self, host: str) -> list[str]:
        """What a host has of the server: files and folders with its id in their name, definitions of guests, disks in storage.

        Logs don't count: they stay, as a hypervisor's do.
        """
        found, state = self.cloud.in_storage(host, self.server), self.cloud.state
        for folder in (state.host(host), state.lab / "hosts" / host):
            for path in folder.rglob("*"):
                if self.server in path.name and (folder / "log") not in path.parents:
                    found.append(str(path.relative_to(state.path)))
            for definition in (folder / "etc" / "qemu").glob("*.xml"):
                if self.server in definition.read_text():
                    found.append(str(definition.relative_to(state.path)))
        return found

    def guests(self) -> list[str]:
        """What runs as the server's guest on any host: processes, or simulated hosts that have it."""
        if not self.cloud.real:
            return sorted(
                path.parents[1].name for path in self.cloud.state.path.glob(f"hosts/*/guests/{self.server}.json")
            )
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            # Processes end meanwhile.
            with suppress(FileNotFoundError, ProcessLookupError):
                words = path.read_bytes().decode(errors="replace").split("\0")
                if Path(words[0]).name.startswith("qemu-system") and self.server in words:
                    found.append(f"process {path.parent.name}")
        return found

    def consumers(self, provider_allocations: dict[str, Any]) -> list[str]:
        """Which of a provider's allocations are the server's or one of its migrations'."""
        return [consumer for consumer in provider_allocations if consumer in {self.server, *self.migrations}]

    def bindings(self) -> dict[str, list[str]]:
        """Port -> ``host: status`` of each of its bindings."""
        network = self.admin.network
        ports = _get(network, f"/ports?device_id={self.server}")["ports"]
        return {
            port["id"]: [
                f"{binding['host']}: {binding['status']}"
                for binding in _get(network, f"/ports/{port['id']}/bindings")["bindings"]
            ]
            for port in ports
        }

    def attachments(self) -> list[str]:
        """``status on host`` of each attachment of a volume to the server."""
        volumes = self.admin.block_storage
        listed = _get(volumes, f"/attachments/detail?instance_id={self.server}&all_tenants=1", VOLUME_MICROVERSION)
        hosts = {
            attachment["attachment_id"]: attachment.get("host_name")
            for volume_id in {attachment["volume_id"] for attachment in listed["attachments"]}
            for attachment in _get(volumes, f"/volumes/{volume_id}", VOLUME_MICROVERSION)["volume"]["attachments"]
        }
        return [f"{each['status']} on {hosts.get(each['id'])}" for each in listed["attachments"]]

    def counted(self) -> dict[str, Counted]:
        """Migration -> what its record says of it."""
        engine = sa.create_engine(self.cloud.database("api"))
        columns: list[sa.ColumnClause[Any]] = [
            sa.column(name) for name in ("uuid", *(each.name for each in fields(Counted)))
        ]
        wanted = sa.select(*columns).select_from(sa.table("migrations")).where(columns[0].in_(self.migrations))
        try:
            with engine.connect() as connection:
                return {row[0]: Counted(*row[1:]) for row in connection.execute(wanted)}
        finally:
            engine.dispose()

    def temporary_images(self) -> list[str]:
        """Names of images that were made of the server."""
        images = _get(self.admin.image, "/images?limit=1000")["images"]
        return [image["name"] for image in images if image.get("instance_uuid") == self.server]


def _orphans(connection: sa.Connection) -> list[str]:
    """Rows whose parent is missing. Only SQLite can have them; database servers do not allow it."""
    if connection.dialect.name != "sqlite":
        return []
    found = connection.execute(sa.text("pragma foreign_key_check")).fetchall()
    return [f"{table}: row {row} without its {parent}" for table, row, parent, _key in found]


def _get(service: Any, path: str, microversion: str | None = None) -> Any:
    headers = {"OpenStack-API-Version": microversion} if microversion else {}
    answer = service.get(path, headers=headers)
    answer.raise_for_status()
    return answer.json()
