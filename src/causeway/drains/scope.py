"""The servers that a drain moves, read in bulk: a few statements for each cell, however many servers it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oslo_config import cfg

from causeway import errors
from causeway.model.drains import Scope, Targets
from causeway.model.host import Aggregate, CellMapping
from causeway.store.api import aggregates, mappings
from causeway.store.api import cells as cell_records
from causeway.store.cell import hosts as cell_hosts
from causeway.store.cell import residents
from causeway.store.cell.residents import Resident
from causeway.store.cells import Cells
from causeway.store.database import Database, utcnow


@dataclass
class Ground:
    """The cloud's cells (by uuid), hosts (with their cells' uuids) and aggregates, as all parts of a plan see them."""

    cells: dict[str, CellMapping]
    hosts: dict[str, str]
    aggregates: list[Aggregate]
    default_zone: str

    def cells_named(self, names: list[str]) -> set[str]:
        """The uuids of cells with these names or uuids. Like all methods here, raises BadRequest for an unknown name."""
        found: set[str] = set()
        for name in names:
            uuids = {cell.uuid for cell in self.cells.values() if name in (cell.name, cell.uuid)}
            if not uuids:
                raise errors.BadRequest(f"There is no cell {name}.")
            found |= uuids
        return found

    def hosts_named(self, names: list[str]) -> set[str]:
        for name in names:
            if name not in self.hosts:
                raise errors.BadRequest(f"There is no host {name}.")
        return set(names)

    def hosts_of(self, field: str, places: Scope | Targets) -> set[str]:
        """The hosts of all places that a field of a drain names. Errors begin with ``field``."""
        found: set[str] = set()
        for kind, hosts_of in (
            ("cells", self.hosts_of_cells),
            ("hosts", self.hosts_named),
            ("aggregates", self.hosts_of_aggregates),
            ("zones", self.hosts_of_zones),
        ):
            try:
                found |= hosts_of(getattr(places, kind, []))
            except errors.BadRequest as unknown:
                raise errors.BadRequest(f"{field}.{kind}: {unknown.message}") from unknown
        return found

    def hosts_of_cells(self, names: list[str]) -> set[str]:
        uuids = self.cells_named(names)
        return {host for host, cell in self.hosts.items() if cell in uuids}

    def hosts_of_aggregates(self, names: list[str]) -> set[str]:
        found: set[str] = set()
        for name in names:
            named = [aggregate for aggregate in self.aggregates if name == aggregate.name]
            if not named:
                raise errors.BadRequest(f"There is no aggregate {name}.")
            found |= {host for aggregate in named for host in aggregate.hosts}
        return found & self.hosts.keys()

    def hosts_of_zones(self, names: list[str]) -> set[str]:
        by_zone: dict[str, set[str]] = {}
        for aggregate in self.aggregates:
            if aggregate.availability_zone:
                by_zone.setdefault(aggregate.availability_zone, set()).update(aggregate.hosts)
        elsewhere = set().union(*by_zone.values())
        by_zone.setdefault(self.default_zone, set()).update(self.hosts.keys() - elsewhere)
        found: set[str] = set()
        for name in names:
            if name not in by_zone:
                raise errors.BadRequest(f"There is no availability zone {name}.")
            found |= by_zone[name]
        return found & self.hosts.keys()


@dataclass
class Tenant:
    """A server in the scope, with its cell."""

    server: Resident
    cell_uuid: str
    cell_name: str


@dataclass
class Scoped:
    """The servers and hosts of a scope. ``hosts``: those that are emptied; ``silent``: names of cells that did not answer.

    ``capabilities``, ``down`` and ``dead``: of all hosts of the cells that were asked. A host that an operator has fenced is
    dead, and also down.
    """

    tenants: list[Tenant] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    silent: list[str] = field(default_factory=list)
    capabilities: dict[str, dict[str, Any]] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)


@dataclass
class _CellAnswer:
    servers: list[Resident]
    capabilities: dict[str, dict[str, Any]]
    down: set[str]
    dead: set[str]


def look_around(cells: Cells, conf: cfg.ConfigOpts) -> Ground:
    """Reads the cells, hosts and aggregates of the cloud from the API database."""
    cells.refresh()
    return Ground(
        cells={cell.uuid: cell for cell in cells.mappings(cell0=False)},
        hosts=cell_records.hosts(cells.api),
        aggregates=aggregates.list_all(cells.api),
        default_zone=conf.default_availability_zone,
    )


def hosts_of(ground: Ground, scope: Scope) -> set[str]:
    """The hosts that a scope empties. Raises BadRequest for an unknown name."""
    return ground.hosts_of("scope", scope)


def read(cells: Cells, conf: cfg.ConfigOpts, ground: Ground, scope: Scope) -> Scoped:
    """Reads the servers of a scope.

    Raises BadRequest for unknown names, and CellDown if no cell with servers of the scope answers.
    """
    found = Scoped(hosts=hosts_of(ground, scope))
    whole, named = ground.cells_named(scope.cells), _named_servers(cells.api, scope.servers)

    def ask(cell: CellMapping, database: Database) -> _CellAnswer:
        now, patience = utcnow(), conf.service_down_time
        services = cell_hosts.list_services(database, binary="nova-compute")
        return _CellAnswer(
            servers=residents.read(
                database,
                everybody=cell.uuid in whole,
                hosts={host for host in found.hosts if ground.hosts[host] == cell.uuid},
                projects=scope.projects,
                uuids=[uuid for uuid, of_cell in named.items() if of_cell == cell.uuid],
            ),
            capabilities=residents.capabilities(database),
            down={service.host for service in services if not cell_hosts.is_up(service, now, patience)},
            dead={service.host for service in services if service.forced_down},
        )

    answers = cells.ask_all(ask, cell0=False, without_failed=True)
    for uuid, answer in answers.by_cell.items():
        cell = ground.cells[uuid]
        found.tenants += [Tenant(server, uuid, cell.name) for server in answer.servers]
        found.capabilities |= answer.capabilities
        found.down |= answer.down
        found.dead |= answer.dead
    concerned = whole | {ground.hosts[host] for host in found.hosts} | {cell for cell in named.values() if cell}
    found.silent = sorted(cell.name for cell in answers.down if scope.projects or cell.uuid in concerned)
    if found.silent and not found.tenants:
        names = ", ".join(found.silent)
        raise errors.CellDown(f"The servers to be moved can't be read: {names} does not answer. Try again later.")
    _refuse_missing(scope.servers, named, found, {cell.uuid for cell in answers.down})
    found.tenants.sort(key=lambda tenant: tenant.server.uuid)
    return found


def _named_servers(api: Database, uuids: list[str]) -> dict[str, str | None]:
    known = mappings.cells_of(api, uuids)
    for uuid in uuids:
        if uuid not in known:
            raise errors.BadRequest(f"scope.servers: There is no server {uuid}.")
    return known


def _refuse_missing(uuids: list[str], cells_of: dict[str, str | None], found: Scoped, down: set[str]) -> None:
    present = {tenant.server.uuid for tenant in found.tenants}
    for uuid in uuids:
        if uuid not in present and cells_of[uuid] not in down:
            raise errors.BadRequest(
                f"scope.servers: Server {uuid} was deleted, or was never built in a cell: it can't be moved."
            )
