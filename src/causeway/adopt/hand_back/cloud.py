"""Hands servers back to Nova: all that its databases are to know before it continues with some hosts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from causeway.adopt.hand_back import api_writes, our_servers, server_writes, without_host
from causeway.adopt.hand_back.compared import essence_of
from causeway.adopt.hand_back.nova_objects import NovaObjects
from causeway.adopt.hand_back.things import hand_back_things
from causeway.adopt.hand_back.unsettled import Unsettled, unsettled
from causeway.adopt.importing import server_records
from causeway.adopt.importing.server_batches import surroundings_of, with_all_rows
from causeway.adopt.nova import NovaCell, NovaCloud, narrow, tables
from causeway.adopt.records import ImportedServer, server_of
from causeway.adopt.records.server_rows import Surroundings
from causeway.store.api import adoptions, groups, operations
from causeway.store.api.adoptions import Adoption
from causeway.store.cell import instances, many_servers
from causeway.store.cells import Cells
from causeway.store.database import Database, parts, utcnow

# An import that follows finds another one, and writes the server again.
_NO_DIGEST = "0" * 64


@dataclass
class HandedBack:
    """uuids of servers, by what was done in Nova's databases."""

    made: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    unchanged: int = 0
    # How many of each other kind.
    things: dict[str, int] = field(default_factory=dict)

    @property
    def is_unchanged(self) -> bool:
        return not (self.made or self.changed or self.moved or self.deleted or self.things)

    def add(self, more: HandedBack) -> None:
        """Adds what a further run wrote."""
        for before, new in (
            (self.made, more.made),
            (self.changed, more.changed),
            (self.moved, more.moved),
            (self.deleted, more.deleted),
        ):
            before.extend(uuid for uuid in new if uuid not in before)
        self.unchanged = more.unchanged
        self.things = {
            kind: self.things.get(kind, 0) + more.things.get(kind, 0) for kind in {**self.things, **more.things}
        }


@dataclass
class _Side:
    """What Nova's records say of a server. ``living``: all cells with a row of it that is not deleted."""

    cell: NovaCell | None = None
    server: ImportedServer | None = None
    living: list[NovaCell] = field(default_factory=list)


class HandBack:
    """``nova``: opened as writable. ``owned``: the hosts that are Causeway's, those that are handed back among them."""

    def __init__(self, nova: NovaCloud, api: Database, cells: Cells, owned: Collection[str]) -> None:
        self._nova, self._api, self._cells = nova, api, cells
        self._owned = frozenset(owned)
        self._has_all = adoptions.is_finished(api)

    def unsettled(self, hosts: Collection[str]) -> list[Unsettled]:
        """What must be settled here before these hosts are handed back."""
        found: list[Unsettled] = []
        for uuids in self._batches(frozenset(hosts)):
            ours, theirs = our_servers.read(self._api, self._cells, uuids), self._theirs(uuids)
            for uuid in uuids:
                if uuid not in ours:
                    found.extend(self._unknown(uuid))
                    continue
                instance, before = ours[uuid][1].instance, theirs[uuid].server
                working = operations.search(self._api, instance_uuid=uuid)
                state = None if before is None else before.instance.vm_state.value
                found.extend(unsettled(instance, working, nova_state=state))
        return found

    def run(self, *, write: bool = True) -> HandedBack:
        """Writes what differs, of all servers that were or are on hosts that are Causeway's. May be repeated.

        ``write`` False: only says what would be written.
        """
        done = HandedBack()
        if self._has_all:
            # Before servers, which name flavors and groups.
            done.things = hand_back_things(self._nova, self._api, write=write)
        for uuids in self._batches(self._owned):
            ours, theirs = our_servers.read(self._api, self._cells, uuids), self._theirs(uuids)
            known = adoptions.of_keys(self._api, server_records.KIND, uuids)
            for uuid in uuids:
                if uuid in ours:
                    cell_uuid, server = ours[uuid]
                    is_same = self._hand_back(cell_uuid, server, theirs[uuid], done, write=write)
                    # Also if it is the same: whoever wrote it may have died before this.
                    if write and (not is_same or uuid not in known):
                        self._note(uuid, cell_uuid)
                elif theirs[uuid].living and self._is_deleted_here(uuid):
                    done.deleted.append(uuid)
                    if write:
                        self._delete(uuid, theirs[uuid])
        return done

    def _hand_back(
        self, cell_uuid: str, server: ImportedServer, before: _Side, done: HandedBack, *, write: bool
    ) -> bool:
        """Returns whether Nova's records say the same already."""
        uuid, home = server.instance.uuid, self._by_uuid[cell_uuid]
        is_same_cell = before.cell is not None and before.cell.uuid == cell_uuid
        is_same = is_same_cell and before.server is not None and _is_same(home, before.server, server)
        if is_same:
            done.unchanged += 1
        else:
            where = done.made if before.server is None else done.changed if is_same_cell else done.moved
            where.append(uuid)
            if write:
                self._write(home, server)
        # Last: until here Nova finds the server where it was.
        for other in before.living:
            if write and other.uuid != cell_uuid:
                server_writes.mark_deleted(other.database, uuid)
        return is_same

    def _write(self, home: NovaCell, server: ImportedServer) -> None:
        instance = server.instance
        compute_id = self._compute_id(home, instance.host, instance.node)
        server_writes.write(home.database, server, compute_id, self._objects)
        group = groups.of_server(self._api, instance.uuid)
        api_writes.write(self._nova.api, server, home.row_id, self._objects, None if group is None else group.uuid)

    def _note(self, uuid: str, cell_uuid: str) -> None:
        """Lets later imports know the server, which may have been made here."""
        with self._api.write() as connection:
            adoptions.save_in(
                connection, [Adoption(server_records.KIND, uuid, _NO_DIGEST, utcnow(), cell_uuid=cell_uuid)]
            )

    def _delete(self, uuid: str, before: _Side) -> None:
        for cell in before.living:
            server_writes.mark_deleted(cell.database, uuid)
        api_writes.mark_deleted(self._nova.api, uuid)

    def _is_deleted_here(self, uuid: str) -> bool:
        """Whether a record says so. A server of which nothing is known may be one that was never imported."""
        for cell in self._cells.mappings():
            found = instances.find(self._cells.database(cell.uuid), uuid, deleted=True)
            if found is not None:
                return found.deleted
        return False

    def _unknown(self, uuid: str) -> Iterator[Unsettled]:
        if not self._is_deleted_here(uuid):
            yield Unsettled(uuid, "", "Nova has it on a host that is Causeway's, and no record here knows it")

    def _batches(self, hosts: frozenset[str]) -> Iterator[Sequence[str]]:
        """The servers that are on these hosts by either's records, and those on no host that are Causeway's to write."""
        found: set[str] = set()
        table = narrow.PLACES
        for part in parts(sorted(hosts)):
            for cell in self._nova.cells:
                for batch in cell.database.batches(table, 500, table.c.deleted == 0, table.c.host.in_(part)):
                    found.update(row["uuid"] for row in batch)
            for mapping in self._cells.mappings():
                found |= many_servers.on_hosts(self._cells.database(mapping.uuid), part)
        found |= without_host.uuids(self._nova, self._api, self._cells, has_all=self._has_all)
        yield from parts(sorted(found))

    def _theirs(self, uuids: Sequence[str]) -> dict[str, _Side]:
        found = {uuid: _Side() for uuid in uuids}
        mapped = self._nova.api.rows_of(tables.INSTANCE_MAPPINGS, "instance_uuid", uuids)
        for cell in self._nova.cells:
            rows = cell.database.rows_of(tables.INSTANCES, "uuid", uuids)
            there = {uuid: each[0] for uuid, each in rows.items()}
            for uuid in there:
                found[uuid].living.append(cell)
            here = {
                uuid: row for uuid, row in there.items() if uuid in mapped and mapped[uuid][0]["cell_id"] == cell.row_id
            }
            for server_rows in with_all_rows(self._nova, cell, here):
                uuid = server_rows.instance["uuid"]
                found[uuid].cell, found[uuid].server = cell, server_of(server_rows, self._around)
        return found

    def _compute_id(self, cell: NovaCell, host: str | None, node: str | None) -> int | None:
        """Nova's number of a server's compute node."""
        if host is None:
            return None
        table = narrow.NODES
        found = cell.database.rows(table, table.c.deleted == 0, table.c.host == host)
        rows = [row for row in found if node is None or row["hypervisor_hostname"] == node] or found
        return rows[0]["id"] if rows else None

    @cached_property
    def _around(self) -> Surroundings:
        return surroundings_of(self._nova)

    @cached_property
    def _by_uuid(self) -> dict[str, NovaCell]:
        return {cell.uuid: cell for cell in self._nova.cells}

    @cached_property
    def _objects(self) -> NovaObjects:
        """With the versions of what this deployment has written last."""
        texts = [row["spec"] for row in self._nova.api.newest(tables.REQUEST_SPECS)]
        for cell in self._nova.cells:
            for row in cell.database.newest(tables.INSTANCE_EXTRA):
                texts += [row["flavor"], row["keypairs"], row["numa_topology"], row["trusted_certs"]]
        return NovaObjects(texts)


def _is_same(home: NovaCell, theirs: ImportedServer, ours: ImportedServer) -> bool:
    kept = home.database.kept
    return bool(essence_of(theirs, kept) == essence_of(ours, kept))


__all__ = ["HandBack", "HandedBack"]
