"""Servers as Causeway's databases have them, in the form of an import."""

from __future__ import annotations

from collections.abc import Sequence

from causeway.adopt.records import ImportedServer
from causeway.model.instance import Instance
from causeway.scheduler.request import RequestSpec
from causeway.store.api import mappings, migrations
from causeway.store.cell import actions, block_devices, instances
from causeway.store.cells import Cells
from causeway.store.database import Database, parts


def read(api: Database, cells: Cells, uuids: Sequence[str]) -> dict[str, tuple[str, ImportedServer]]:
    """uuid -> (its cell, the server), of those that are there and not deleted."""
    homes = mappings.cells_of(api, list(uuids))
    specs = mappings.get_specs(api, list(uuids))
    found: dict[str, tuple[str, ImportedServer]] = {}
    for cell_uuid in {home for home in homes.values() if home is not None}:
        database = cells.database(cell_uuid)
        of_cell = [uuid for uuid, home in homes.items() if home == cell_uuid]
        faults = actions.latest_faults(database, of_cell)
        for part in parts(of_cell):
            table = instances.TABLE
            living = instances.SELECT.where(table.c.uuid.in_(part), table.c.deleted.is_(False))
            for instance in instances.select(database, living):
                stored = specs.get(instance.uuid)
                spec = RequestSpec.from_persisted(stored) if stored else _bare(instance)
                with database.read() as connection:
                    devices = block_devices.of_instance_in(connection, instance.uuid)
                    history = actions.history(connection, instance.uuid)
                moves = migrations.search(api, instance_uuid=instance.uuid)
                server = ImportedServer(instance, spec, devices, history, faults.get(instance.uuid), moves)
                found[instance.uuid] = (cell_uuid, server)
    return found


def _bare(instance: Instance) -> RequestSpec:
    return RequestSpec(instance.uuid, instance.project_id, instance.user_id, instance.flavor, image=instance.image_meta)


__all__ = ["read"]
