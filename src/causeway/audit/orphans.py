"""Finds orphaned allocations: on compute nodes in Placement, of consumers that are no longer servers or migrations.

Placement is asked first, and the databases after it. A consumer that gets an allocation in the meantime is not in the list, and
the databases know consumers before they have an allocation.
"""

from __future__ import annotations

from dataclasses import dataclass

from causeway import errors
from causeway.clients.placement import PlacementClient
from causeway.clients.placement.types import Allocations
from causeway.model.host import CellMapping
from causeway.model.states import MIGRATION_ENDED
from causeway.store.api import journal, mappings, migrations
from causeway.store.cell import hosts, many_servers
from causeway.store.cells import Cells
from causeway.store.database import Database


@dataclass
class Orphan:
    """``keep``: why its allocations are not to be deleted; empty if they may be."""

    consumer: str
    held: Allocations
    keep: str = ""


def find(cells: Cells, placement: PlacementClient, provider: str | None = None) -> list[Orphan]:
    """The orphans on a provider, or on all compute nodes.

    Raises NotFound if there is no such provider, and DatabaseFailed unless all cells answer: any of them may have the server.
    """
    held = _held(cells, placement, provider)
    records, _nodes = _known(cells)
    mapped = mappings.cells_of(cells.api, list(held))
    queued = set(mapped) - mappings.living_among(cells.api, mapped)
    known = migrations.of_uuids(cells.api, held)
    ending = {operation.migration_uuid for operation in journal.unfinished(cells.api)}
    found = []
    for consumer, allocations in sorted(held.items()):
        if consumer in records or consumer in ending or (consumer in mapped and consumer not in queued):
            continue
        # A server without a cell may still be building, though it is to be deleted.
        if consumer in queued and mapped[consumer] is None:
            continue
        migration = known.get(consumer)
        if migration is not None and migration.status not in MIGRATION_ENDED:
            continue
        keep = ""
        if migration is not None and migration.instance_uuid in records:
            own = placement.get_allocations(migration.instance_uuid)
            keep = "" if own.allocations else f"it may be all that server {migration.instance_uuid} has"
        found.append(Orphan(consumer, allocations, keep))
    return found


def _held(cells: Cells, placement: PlacementClient, only: str | None) -> dict[str, Allocations]:
    """consumer -> what it holds on compute nodes' providers and on those below them."""
    if only is not None and placement.get_provider(only) is None:
        raise errors.NotFound(f"There is no resource provider {only}.")
    _records, nodes = _known(cells)
    found: dict[str, Allocations] = {}
    for provider in placement.list_providers():
        if provider.root_uuid in nodes and only in (None, provider.uuid):
            for consumer, resources in placement.get_provider_allocations(provider.uuid).items():
                found.setdefault(consumer, {})[provider.uuid] = resources
    return found


def _known(cells: Cells) -> tuple[set[str], set[str]]:
    """The servers that have a record in any cell which is not deleted, and the compute nodes of all cells."""

    def ask(_cell: CellMapping, database: Database) -> tuple[set[str], set[str]]:
        return many_servers.living(database), {node.uuid for node in hosts.list_nodes(database)}

    answers = cells.ask_all(ask)
    if answers.down:
        names = ", ".join(sorted(down.name for down in answers.down))
        raise errors.DatabaseFailed(f"Whose allocations these are is unknown: {names} does not answer.")
    records = set().union(*(found for found, _nodes in answers.by_cell.values()))
    return records, set().union(*(nodes for _records, nodes in answers.by_cell.values()))
