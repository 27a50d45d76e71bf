"""Imports the servers of all cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import sqlalchemy as sa

from causeway.adopt.importing import server_records
from causeway.adopt.importing.digests import digest_of
from causeway.adopt.importing.report import ImportReport
from causeway.adopt.importing.server_batches import server_batches, surroundings_of
from causeway.adopt.nova import NovaCell, NovaCloud, tables
from causeway.adopt.nova.objects import UnknownRecord
from causeway.adopt.records import ImportedServer, ServerRows, server_of
from causeway.adopt.records.server_rows import Surroundings
from causeway.store.api import adoptions, mappings
from causeway.store.api.adoptions import Adoption
from causeway.store.cell import instances
from causeway.store.cells import Cells
from causeway.store.database import Database

KIND = server_records.KIND
# Completes servers with what the network service knows of their ports.
Network: TypeAlias = Callable[[Sequence[ImportedServer]], None]


@dataclass
class ServerImport:
    """``owned``: hosts that are Causeway's already: their servers are its own. ``progress``: called after each batch."""

    nova: NovaCloud
    api: Database
    cells: Cells
    network: Network
    report: ImportReport
    owned: Collection[str] = frozenset()
    size: int = 500
    progress: Callable[[int], None] = lambda _number: None

    def run(self) -> None:
        """Imports what has changed, and deletes what Nova has no longer."""
        around = surroundings_of(self.nova)
        for cell in self.nova.cells:
            for batch in server_batches(self.nova, cell, self.size):
                self._import(cell, batch, around)
                self.progress(len(batch))
        self._leave_out_unscheduled()
        for known in adoptions.batches(self.api, KIND, self.size):
            self._delete_gone(known)

    def _import(self, cell: NovaCell, batch: Sequence[ServerRows], around: Surroundings) -> None:
        nova_ids = {rows.instance["uuid"]: rows.instance["id"] for rows in batch}
        known = adoptions.of_keys(self.api, KIND, list(nova_ids))
        ours = self._ours(cell.uuid, batch, known)
        self.report.ours += len(ours)
        servers = self._convert([rows for rows in batch if rows.instance["uuid"] not in ours], around)
        self.network(servers)
        counts, digests = self.report.of(KIND), {}
        for server in servers:
            digests[server.instance.uuid] = digest_of(server)
            counts.add(digests[server.instance.uuid])
        changed = [
            server
            for server in servers
            if (before := known.get(server.instance.uuid)) is None
            or before.digest != digests[server.instance.uuid]
            or before.cell_uuid != cell.uuid
        ]
        if changed:
            self._delete_from_other_cells(
                cell.uuid, [known[s.instance.uuid] for s in changed if s.instance.uuid in known]
            )
            server_records.write(self.api, self.cells.database(cell.uuid), cell.uuid, changed, digests, nova_ids)
            counts.written += len(changed)

    def _convert(self, batch: Sequence[ServerRows], around: Surroundings) -> list[ImportedServer]:
        """Those that can be taken over; the others are noted."""
        found, left_out = [], []
        for rows in batch:
            row = rows.instance
            try:
                server = server_of(rows, around)
            except UnknownRecord as failure:
                left_out.append((row["uuid"], row["display_name"] or "", failure.message))
                continue
            if server.waits_for is None:
                found.append(server)
            else:
                left_out.append((row["uuid"], row["display_name"] or "", server.waits_for))
        self.report.leave_out(KIND, left_out)
        return found

    def _ours(self, cell_uuid: str, batch: Sequence[ServerRows], known: dict[str, Adoption]) -> set[str]:
        """The servers that Nova's records are no longer true of, by their hosts in either's records; and those made here."""
        ours = {rows.instance["uuid"] for rows in batch if rows.instance["host"] in self.owned}
        uuids = [rows.instance["uuid"] for rows in batch]
        homes = mappings.cells_of(self.api, uuids)
        ours.update(uuid for uuid in homes if uuid not in known)
        if self.owned:
            for home in {home for home in homes.values() if home is not None} | {cell_uuid}:
                ours.update(instances.uuids_on(self.cells.database(home), self.owned) & set(uuids))
        return ours

    def _delete_from_other_cells(self, cell_uuid: str, known: Sequence[Adoption]) -> None:
        for other in {each.cell_uuid for each in known} - {cell_uuid, None}:
            uuids = [each.key for each in known if each.cell_uuid == other]
            server_records.delete_from_cell(self.cells.database(other or ""), uuids)

    def _leave_out_unscheduled(self) -> None:
        rows = self.nova.api.rows(tables.INSTANCE_MAPPINGS, tables.INSTANCE_MAPPINGS.c.cell_id.is_(sa.null()))
        requests = self.nova.api.rows_of(
            tables.BUILD_REQUESTS,
            "instance_uuid",
            [row["instance_uuid"] for row in rows if not row["queued_for_delete"]],
        )
        why = "Nova has not scheduled it yet: wait until it is built, or delete it there"
        self.report.leave_out(KIND, [(uuid, "", why) for uuid in requests])

    def _delete_gone(self, known: Sequence[Adoption]) -> None:
        """Deletes servers that were imported, and deleted in Nova since."""
        for cell in self.nova.cells:
            uuids = [each.key for each in known if each.cell_uuid == cell.uuid]
            there = cell.database.rows_of(tables.INSTANCES, "uuid", uuids)
            gone = [uuid for uuid in uuids if uuid not in there]
            if not gone:
                continue
            database = self.cells.database(cell.uuid)
            if self.owned:
                kept = instances.uuids_on(database, self.owned)
                gone = [uuid for uuid in gone if uuid not in kept]
            server_records.delete(self.api, database, gone)
            self.report.of(KIND).deleted += len(gone)


__all__ = ["KIND", "Network", "ServerImport"]
