"""Deletes a cell, if nothing in it is needed, with everything that the cloud has about its hosts.

Everything is checked before anything is changed. Then the cell is disabled, rows of deleted servers are archived, the hosts are
removed, and at last the cell's mapping is deleted. If this is interrupted, it can be repeated. The cell's database stays.

Computes of the cell may still run, if they take no new servers. Their reports may make new records of their services, which are
in the cell's database. Afterwards nothing listens to these computes; switch them off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from causeway import errors
from causeway.clients.placement import PlacementClient
from causeway.hosts.host_removal import remove_host
from causeway.hosts.liveness import BINARY
from causeway.model.drains import AT_REST, DrainState
from causeway.model.host import CellMapping, Service
from causeway.model.migration import EVACUATION
from causeway.model.states import MigrationStatus
from causeway.store import archive, own_nodes
from causeway.store.api import cells, cleanups, drains, journal, mappings, migrations
from causeway.store.cell import hosts, many_servers
from causeway.store.database import Database, utcnow

# Rows archived in one transaction, and names shown in a message.
_ROWS, _MOST_NAMED = 1000, 3


@dataclass
class Removed:
    """What was deleted with a cell. ``archived``: rows of deleted servers, which are in shadow tables now."""

    hosts: list[str]
    archived: int = 0


@dataclass
class Removal:
    """``database``: of the cell. ``placement``: only called if the cell has hosts. ``down_time``: see `service_down_time`."""

    api: Database
    database: Database
    cell: CellMapping
    placement: Callable[[], PlacementClient]
    down_time: float

    def remove(self) -> Removed:
        """Deletes the cell. Raises Conflict, with every reason, and changes nothing, if the cell is not empty."""
        mapped = [host for host, cell in cells.hosts(self.api).items() if cell == self.cell.uuid]
        services = {service.host: service for service in hosts.list_services(self.database, binary=BINARY)}
        names = sorted({*mapped, *services, *(node.host for node in hosts.list_nodes(self.database))})
        found = [*self._servers(), *self._work(), *self._open_hosts(services.values())]
        if not found and names:
            found = list(self._held(names))
        if found:
            raise errors.Conflict(f"Cell {self.cell.name} is not empty. {' '.join(found)}")
        cells.save_cell(self.api, replace(self.cell, disabled=True))
        removed = Removed(names, self._archive())
        for host in names:
            remove_host(self.api, self.placement(), self.cell.uuid, self.database, host)
            if host in services:
                hosts.delete_service(self.database, services[host].uuid)
        self._delete_cleanups()
        cells.delete_empty_cell(self.api, self.cell)
        return removed

    def _servers(self) -> Iterator[str]:
        """Reasons: servers that live here, and records that a move has left here."""
        living = mappings.living_in(self.api, self.cell.uuid)
        if living:
            yield f"It has {_count(living, 'server')}: drain it (causeway drain plan), or delete them."
        there = many_servers.living(self.database)
        going = there & mappings.of_cell(self.api, self.cell.uuid) - living
        if going:
            yield f"It has {_count(going, 'server')} whose delete was requested and has not ended: wait for it."
        copies = there - going - living
        if copies:
            yield (
                f"Its database has records of {_count(copies, 'server')} of other cells: confirm or revert their moves, and"
                " see what `causeway audit` says of the others."
            )

    def _work(self) -> Iterator[str]:
        """Reasons: operations that have not ended, moves that may be reverted, drains."""
        here = mappings.of_cell(self.api, self.cell.uuid)
        working = [operation.instance_uuid for operation in journal.unfinished(self.api)]
        busy = here.intersection(working)
        if busy:
            yield f"Operations work on {_count(busy, 'server')} of it: wait for their end (causeway operation list)."
        waiting = migrations.open_of_cell(self.api, self.cell.uuid)
        if waiting:
            yield f"Moves of {_count(waiting, 'server')} from it or to it have not ended: confirm or revert them."
        for drain in drains.search(self.api, states=[state for state in DrainState if state not in AT_REST]):
            scope = drain.request.scope
            if self.cell.name in scope.cells or self.cell.uuid in scope.cells:
                yield f"Drain {drain.name} ({drain.id}) still works on it: wait for its end, or cancel it."

    def _open_hosts(self, services: Collection[Service]) -> Iterator[str]:
        if self.cell.disabled:
            return
        now = utcnow()
        open_ = [each.host for each in services if not each.disabled and hosts.is_up(each, now, self.down_time)]
        if open_:
            yield (
                f"It has {_count(open_, 'host')} that may get new servers: drain the cell, or disable it (causeway manage"
                f" cell update {self.cell.name} --disable)."
            )

    def _held(self, names: Collection[str]) -> Iterator[str]:
        """Reasons: allocations of these hosts, for servers in any cell."""
        holders: set[str] = set()
        own = own_nodes.of_all(self.api)
        for node in hosts.list_nodes(self.database):
            if node.host in names and own.has(self.cell.uuid, node):
                holders |= self.placement().get_provider_allocations(node.uuid).keys()
        known = mappings.living_among(self.api, holders)
        if known:
            yield f"{_count(known, 'server')} hold something of its hosts in Placement: see what `causeway audit` says."

    def _delete_cleanups(self) -> None:
        """Deletes the cleanups of the cell's hosts, which will not come back."""
        cleanups.delete_of_cell(self.api, self.cell.uuid)
        evacuated = migrations.search(self.api, migration_type=EVACUATION, statuses=[MigrationStatus.DONE])
        for migration in evacuated:
            if migration.source_cell == self.cell.uuid:
                migrations.update(self.api, migration.uuid, status=MigrationStatus.COMPLETED)

    def _archive(self) -> int:
        total = 0
        while once := archive.archive(self.api, self.database, self.cell.uuid, max_rows=_ROWS):
            total += once.total()
        return total


def _count(names: Collection[str], what: str) -> str:
    """ "3 servers (a, b, c)"."""
    shown = sorted(names)[:_MOST_NAMED]
    more = ", ..." if len(names) > len(shown) else ""
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'} ({', '.join(shown)}{more})"
