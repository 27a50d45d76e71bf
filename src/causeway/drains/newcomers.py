"""Servers that came to the hosts of a drain after it was planned: builds that were under way when the hosts were closed."""

from __future__ import annotations

import logging
from collections import defaultdict

from causeway.drains.look import Look
from causeway.model.drains import DrainServer
from causeway.model.instance import Instance
from causeway.model.states import DELETING
from causeway.store.api import drains as store
from causeway.store.cell import instances
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

_GIB = 1 << 30


def add(look: Look) -> None:
    """Makes them servers of the drain. Where they go is found when they are asked for."""
    by_cell: dict[str, list[str]] = defaultdict(list)
    for host, cell_uuid in look.places.items():
        by_cell[cell_uuid].append(host)
    cells = look.services.cells
    known = {server.instance_uuid for server in look.servers}
    there = cells.ask(by_cell, lambda cell, database: instances.uuids_on(database, by_cell[cell.uuid]))
    new = {uuid: cell_uuid for cell_uuid, uuids in there.by_cell.items() for uuid in uuids - known}
    if new:
        # Another drain moves them away as well.
        for uuid in store.of_others(look.services.api, look.drain.id, new):
            del new[uuid]
    found = [server for uuid, cell_uuid in new.items() if (server := _server(look, cells.database(cell_uuid), uuid))]
    if found:
        store.add_servers(look.services.api, look.drain, found)
        look.servers += found
        LOG.info("Drain %s: %s servers came after it was planned", look.drain.id, len(found))


def _server(look: Look, database: Database, uuid: str) -> DrainServer | None:
    instance = instances.find(database, uuid, with_tags=False)
    if instance is None or instance.host not in look.places or instance.task_state in DELETING:
        return None
    return DrainServer(
        drain_id=look.drain.id,
        instance_uuid=uuid,
        name=instance.display_name,
        owner_project=instance.project_id,
        source_cell=look.cell_name(look.places[instance.host]) or "",
        source_host=instance.host,
        flavor=instance.flavor.name,
        new_flavor=look.request.flavors.get(instance.flavor.name),
        bytes=_local_bytes(instance),
        memory_mb=instance.flavor.memory_mb,
    )


def _local_bytes(instance: Instance) -> int:
    """As much as its local disks may have; one that boots from a volume has no root disk."""
    root = instance.flavor.root_gb if instance.image_meta is not None else 0
    return (root + instance.flavor.ephemeral_gb) * _GIB + instance.flavor.swap * (1 << 20)
