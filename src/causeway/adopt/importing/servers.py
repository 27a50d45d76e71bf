"""Imports the servers of all cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import sqlalchemy as sa

from causeway.adopt.importing import server_records
from causeway.adopt.importing.digests import digest_of
from causeway.adopt.importing.report import ImportReport
from causeway.adopt.importing.server_batches import server_batches, surroundings_of
from causeway.adopt.nova import NovaCell, NovaCloud, narrow, tables
from causeway.adopt.nova.objects import UnknownRecord
from causeway.adopt.records import ImportedServer, ServerRows, server_of
from causeway.adopt.records.server_rows import Surroundings
from causeway.store.api import adopted_hosts, adoptions, mappings
from causeway.store.api.adoptions import Adoption
from causeway.store.cell import many_servers
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
        around, host = surroundings_of(self.nova), tables.INSTANCES.c.host
        # What Nova has of servers on these hosts is old: most of a cloud at its finish, so it is not even read.
        not_owned = sa.or_(host.is_(sa.null()), host.not_in(list(self.owned)))
        for cell in self.nova.cells:
            owned = cell.database.count(tables.INSTANCES, tables.INSTANCES.c.deleted == 0, host.in_(list(self.owned)))
            self.report.ours += owned
            self.progress(owned)
            for batch in server_batches(self.nova, cell, self.size, not_owned):
                self._import(cell, batch, around)
                self.progress(len(batch))
        self._leave_out_unscheduled()
        for known in adoptions.batches(self.api, KIND, self.size):
            self._delete_gone(known)

    def _import(self, cell: NovaCell, batch: Sequence[ServerRows], around: Surroundings) -> None:
        nova_ids = {rows.instance["uuid"]: rows.instance["id"] for rows in batch}
        known = adoptions.of_keys(self.api, KIND, list(nova_ids))
        ours = self._ours(list(nova_ids), known)
        self.report.ours += len(ours)
        servers = self._convert([rows for rows in batch if rows.instance["uuid"] not in ours], around)
        self.network(servers)
        with self.api.write() as connection:
            # A host that is being taken waits for this: afterwards its servers are what its service makes of them.
            self._write(connection, cell, self._still_novas(connection, servers), known, nova_ids)

    def _write(
        self,
        connection: sa.Connection,
        cell: NovaCell,
        servers: Sequence[ImportedServer],
        known: Mapping[str, Adoption],
        nova_ids: Mapping[str, int],
    ) -> None:
        """Writes those that have changed since they were imported."""
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
            server_records.write(connection, self.cells.database(cell.uuid), cell.uuid, changed, digests, nova_ids)
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

    def _still_novas(self, connection: sa.Connection, servers: Sequence[ImportedServer]) -> list[ImportedServer]:
        """Those on hosts that have not become Causeway's since this import began, and will not before the transaction ends."""
        here = self._hosts(mappings.cells_of(self.api, [server.instance.uuid for server in servers]))
        self._hold(connection, {*here.values(), *(each.instance.host for each in servers)})
        taken = {uuid for uuid, host in here.items() if host in self.owned}
        left = [each for each in servers if each.instance.uuid not in taken and each.instance.host not in self.owned]
        self.report.ours += len(servers) - len(left)
        return left

    def _hold(self, connection: sa.Connection, hosts: Collection[str | None]) -> None:
        """Looks who owns the hosts, which does not change before the transaction ends."""
        self.owned = {*self.owned, *adopted_hosts.hold_in(connection, {host for host in hosts if host is not None})}

    def _ours(self, uuids: Sequence[str], known: Collection[str]) -> set[str]:
        """Servers that Nova's records are no longer true of: those that live on hosts that are Causeway's, or were made here."""
        homes = mappings.cells_of(self.api, list(uuids))
        hosts = self._hosts(homes) if self.owned else {}
        return {uuid for uuid in homes if uuid not in known or hosts.get(uuid) in self.owned}

    def _hosts(self, homes: Mapping[str, str | None]) -> dict[str, str | None]:
        """server -> its host here. ``homes``: server -> its cell, which may not be the imported one."""
        found: dict[str, str | None] = {}
        for home in {home for home in homes.values() if home is not None}:
            uuids = [each for each, cell in homes.items() if cell == home]
            found |= many_servers.hosts_of(self.cells.database(home), uuids)
        return found

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
        """Deletes servers that were imported, and that Nova has in no cell now, unless they live on hosts that are Causeway's."""
        gone = {each.key: each.cell_uuid or "" for each in known}
        for cell in self.nova.cells:
            for uuid in cell.database.rows_of(narrow.UUIDS, "uuid", list(gone)):
                del gone[uuid]
        if not gone:
            return
        with self.api.write() as connection:
            hosts = self._hosts(mappings.cells_of(self.api, list(gone)))
            self._hold(connection, hosts.values())
            gone = {uuid: home for uuid, home in gone.items() if hosts.get(uuid) not in self.owned}
            for home in set(gone.values()):
                uuids = [uuid for uuid, cell_uuid in gone.items() if cell_uuid == home]
                server_records.delete(connection, self.cells.database(home), uuids)
        self.report.of(KIND).deleted += len(gone)


__all__ = ["KIND", "Network", "ServerImport"]
