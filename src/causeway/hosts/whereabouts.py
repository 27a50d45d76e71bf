"""Finds out where servers live, and whether they are whole there, before anything of them is destroyed on another host."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from causeway import errors
from causeway.context import RequestContext
from causeway.hosts import liveness
from causeway.model.host import CellMapping
from causeway.model.instance import Instance
from causeway.model.states import MigrationStatus
from causeway.running.services import ConductorServices
from causeway.store.api import mappings, migrations
from causeway.store.cell import block_devices, instances
from causeway.store.database import Database

# Statuses in which a migration may have something of the server on both of its hosts.
_BETWEEN_HOSTS: list[str] = [
    MigrationStatus.PRE_MIGRATING,
    MigrationStatus.MIGRATING,
    MigrationStatus.POST_MIGRATING,
    MigrationStatus.FINISHED,
    MigrationStatus.CONFIRMING,
    MigrationStatus.REVERTING,
    MigrationStatus.QUEUED,
    MigrationStatus.PREPARING,
    MigrationStatus.RUNNING,
    MigrationStatus.RUNNING_POST_COPY,
]


@dataclass
class Whereabouts:
    """Where servers are. ``cells``: by their mappings; ``living``: their records; ``unclear``: those whose cell does not answer.

    A server in none of these was deleted.
    """

    cells: dict[str, str | None]
    living: dict[str, Instance]
    unclear: set[str]

    def require_elsewhere(self, uuid: str, host: str, cell_uuid: str | None) -> None:
        """Raises DatabaseFailed for a server of the host's own cell, which does not answer: the server may have to run there."""
        if uuid in self.unclear and self.cells.get(uuid) == cell_uuid:
            raise errors.DatabaseFailed(
                "What the host missed is unknown: its cell does not answer.", details=f"host {host}, server {uuid}"
            )


def look_for(services: ConductorServices, uuids: set[str]) -> Whereabouts:
    """Looks for servers, asking each cell once. Raises DatabaseFailed if the mappings can't be read."""
    cells = mappings.cells_of(services.api, sorted(uuids))
    by_cell: dict[str, list[str]] = defaultdict(list)
    for uuid, cell_uuid in cells.items():
        if cell_uuid is not None:
            by_cell[cell_uuid].append(uuid)

    def find(cell: CellMapping, database: Database) -> list[Instance]:
        found = (instances.find(database, uuid) for uuid in by_cell[cell.uuid])
        return [instance for instance in found if instance is not None]

    answers = services.cells.ask(by_cell, find, without_failed=True)
    living = {instance.uuid: instance for found in answers.by_cell.values() for instance in found}
    unclear = {uuid for cell in answers.down for uuid in by_cell[cell.uuid]}
    missing = sorted(uuids - living.keys() - unclear)
    # The server may have moved to another cell since its mapping was read.
    unclear |= {
        uuid for uuid, cell_uuid in mappings.cells_of(services.api, missing).items() if cell_uuid != cells.get(uuid)
    }
    return Whereabouts(cells, living, unclear | _without_mapping(services, uuids - cells.keys()))


def _without_mapping(services: ConductorServices, uuids: set[str]) -> set[str]:
    """Servers that may not be deleted: a cell has them, or does not answer. Their mapping may be lost (`map_server`)."""
    if not uuids:
        return set()

    def find(_cell: CellMapping, database: Database) -> set[str]:
        return {uuid for uuid in uuids if instances.find(database, uuid, with_tags=False) is not None}

    answers = services.cells.ask_all(find, cell0=False, without_failed=True)
    return uuids if answers.down else set().union(*answers.by_cell.values())


def migrates(services: ConductorServices, uuid: str, host: str, *, besides: str | None = None) -> bool:
    """Whether a migration under way may have something of the server on the host. ``besides``: one that is not asked about."""
    found = migrations.search(services.api, instance_uuid=uuid, statuses=_BETWEEN_HOSTS)
    return any(each.uuid != besides and host in (each.source_compute, each.dest_compute) for each in found)


def require_whole(services: ConductorServices, context: RequestContext, instance: Instance, cell_uuid: str) -> None:
    """Raises CopyNotUsable unless the server's host has its guest with all disks, HostDown if nobody can ask the host."""
    database, host = services.cells.database(cell_uuid), instance.host or ""
    life = liveness.of_host(services, database, host)
    if not life.is_up:
        raise errors.HostDown(f"Whether server {instance.uuid} is whole is unknown.", details=life.explained())
    services.computes(cell_uuid).verify_server(
        context,
        host,
        instance=instance,
        block_devices=block_devices.of_instance(database, instance.uuid),
        stashed=False,
    )
