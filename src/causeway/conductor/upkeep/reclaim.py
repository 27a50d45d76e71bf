"""Deletes servers for good that were deleted ``reclaim_instance_interval`` seconds ago."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from functools import partial

from causeway import errors
from causeway.context import admin_context
from causeway.model.states import VmState
from causeway.operations.requests import ask_for_delete
from causeway.operations.soft_delete import SINCE
from causeway.parts.requests import Requests
from causeway.parts.services import ConductorServices
from causeway.rpc.conductor import ConductorClient
from causeway.store.cell import instances
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

# Seconds between two looks.
LONGEST = 60.0


def interval(services: ConductorServices) -> float:
    """0 if servers are deleted at once."""
    return min(float(services.conf.reclaim_instance_interval), LONGEST)


def reclaim(services: ConductorServices, conductor: ConductorClient) -> None:
    """Asks for the deletion of every server whose time is over, in every cell that answers."""
    before = utcnow() - timedelta(seconds=services.conf.reclaim_instance_interval)
    table = instances.TABLE
    query = table.select().where(
        table.c.vm_state == VmState.SOFT_DELETED.value, table.c.task_state.is_(None), table.c.deleted.is_(False)
    )
    asks = Requests(services.conf, services.api, services.cells, conductor)

    def of_cell(cell_uuid: str) -> None:
        for instance in instances.select(services.cells.database(cell_uuid), query, with_tags=False):
            since = instance.system_metadata.get(SINCE)
            if since is None or datetime.fromisoformat(since) > before:
                continue
            try:
                ask_for_delete(asks, admin_context(project_id=instance.project_id), instance, cell_uuid)
            except errors.CausewayError as failure:
                LOG.warning("Server %s is deleted for good a little later: %s", instance.uuid, failure.message)

    work = {cell.uuid: partial(of_cell, cell.uuid) for cell in services.cells.mappings(cell0=False)}
    services.by_cell("Reclaiming deleted servers").each(work, services.cells.timeout)
