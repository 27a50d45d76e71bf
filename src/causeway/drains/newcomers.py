"""Servers that came to the scope of a drain after it was planned: builds that were under way when its hosts were closed and,
if the drain empties whole cells, servers that have left their hosts since.
"""

from __future__ import annotations

import logging
from collections import defaultdict

from causeway import errors
from causeway.drains.look import Look
from causeway.drains.paths import HOSTLESS
from causeway.model.drains import DrainServer, How, Scope
from causeway.model.host import CellMapping
from causeway.model.instance import Instance
from causeway.model.states import DELETING
from causeway.store import own_nodes
from causeway.store.api import drains as store
from causeway.store.api import journal
from causeway.store.cell import instances, many_servers
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

_GIB = 1 << 30


def add(look: Look) -> None:
    """Adds servers that have come to the scope to the drain. Their targets are chosen when their moves are requested."""
    by_cell: dict[str, list[str]] = defaultdict(list)
    for host, cell_uuid in look.places.items():
        by_cell[cell_uuid].append(host)
    cells = look.services.cells
    known = {server.instance_uuid for server in look.servers}
    whole = {cell.uuid for cell in cells.mappings(cell0=False) if _names(look.request.scope, cell)}

    def find(cell: CellMapping, database: Database) -> set[str]:
        found = many_servers.on_hosts(database, by_cell[cell.uuid])
        return found | (many_servers.without_host(database, HOSTLESS) if cell.uuid in whole else set())

    there = cells.ask(by_cell.keys() | whole, find, without_failed=True)
    new = {uuid: cell_uuid for cell_uuid, uuids in there.by_cell.items() for uuid in uuids - known}
    if new:
        # Another drain moves this server already.
        for uuid in store.of_others(look.services.api, look.drain.id, new):
            del new[uuid]
    found = [server for uuid, cell_uuid in new.items() if (server := _server(look, cell_uuid, uuid))]
    if found:
        store.add_servers(look.services.api, look.drain, found)
        look.servers += found
        LOG.info("Drain %s: %s servers came after it was planned", look.drain.id, len(found))


def note_coming(look: Look) -> None:
    """Notes, as troubles, servers on their way to hosts of the scope, which were chosen before the drain closed the hosts.

    A host shows them when they arrive. Until then only their allocations and a running operation show them.
    """
    known = {server.instance_uuid for server in look.servers}
    for host, cell_uuid in look.places.items():
        look.renew()
        try:
            database = look.services.cells.database(cell_uuid)
            nodes = own_nodes.of_host(look.services.api, cell_uuid, database, host)
            held = [look.services.placement.get_provider_allocations(node.uuid) for node in nodes]
        except errors.CausewayError as failure:
            look.services.api.ping()
            look.trouble(f"It is not known what is on its way to {host}: {failure.message}")
            continue
        coming = journal.under_work(look.services.api, set().union(*held) - known)
        if coming:
            many = len(coming) > 1
            look.trouble(
                f"{len(coming)} {'servers are' if many else 'server is'} on {'their' if many else 'its'} way to {host}:"
                f" {'they were' if many else 'it was'} placed there before the host was closed."
            )


def _names(scope: Scope, cell: CellMapping) -> bool:
    return cell.name in scope.cells or cell.uuid in scope.cells


def _server(look: Look, cell_uuid: str, uuid: str) -> DrainServer | None:
    instance = instances.find(look.services.cells.database(cell_uuid), uuid, with_tags=False)
    if instance is None or instance.hidden or instance.task_state in DELETING:
        return None
    if instance.host not in look.places and not (instance.host is None and instance.vm_state in HOSTLESS):
        return None
    is_on_host = instance.host is not None
    return DrainServer(
        drain_id=look.drain.id,
        instance_uuid=uuid,
        name=instance.display_name,
        owner_project=instance.project_id,
        how=None if is_on_host else How.RECORDS,
        source_cell=look.cell_name(cell_uuid) or "",
        source_host=instance.host or "",
        flavor=instance.flavor.name,
        new_flavor=look.request.flavors.get(instance.flavor.name),
        bytes=_local_bytes(instance) if is_on_host else 0,
        memory_mb=instance.flavor.memory_mb,
    )


def _local_bytes(instance: Instance) -> int:
    """The largest size of a server's local disks. A server that boots from a volume has no local root disk."""
    root = instance.flavor.root_gb if instance.image_meta is not None else 0
    return (root + instance.flavor.ephemeral_gb) * _GIB + instance.flavor.swap * (1 << 20)
