"""Confirms resizes that nobody confirmed or reverted within ``resize_confirm_window``.

By the conductor, so it works across cells without a compute asking for anything.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from datetime import timedelta
from functools import partial

from causeway import errors
from causeway.conductor.services import ConductorServices
from causeway.context import admin_context
from causeway.model.migration import Migration
from causeway.model.states import MigrationStatus, TaskState, VmState
from causeway.moves.requests import Requests, request_confirm
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import mappings, migrations
from causeway.store.cell import instances
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

# Seconds between two looks, as in the field.
INTERVAL = 60.0


def interval(services: ConductorServices) -> float:
    """0 if resizes wait for their users for ever."""
    return min(INTERVAL, float(services.conf.resize_confirm_window))


def confirm_waiting(services: ConductorServices, conductor: ConductorClient) -> None:
    """Asks for the confirm of every migration that waits for longer than the window."""
    waiting = migrations.search(
        services.api,
        statuses=[MigrationStatus.FINISHED],
        changes_before=utcnow() - timedelta(seconds=services.conf.resize_confirm_window),
    )
    if not waiting:
        return
    homes = mappings.cells_of(services.api, [migration.instance_uuid for migration in waiting])
    by_cell: dict[str, list[Migration]] = defaultdict(list)
    for migration in waiting:
        by_cell[homes.get(migration.instance_uuid) or ""].append(migration)
    work = {cell: partial(_confirm, services, conductor, found) for cell, found in by_cell.items()}
    services.by_cell("Confirming resizes").each(work, services.cells.timeout)


def _confirm(services: ConductorServices, conductor: ConductorClient, waiting: list[Migration]) -> None:
    """Those of servers of one cell."""
    for migration in waiting:
        if services.stopping.is_set():
            return
        try:
            _cell, database = services.cells.of_server(migration.instance_uuid)
            instance = instances.get(database, migration.instance_uuid)
            if instance.vm_state is VmState.RESIZED and instance.task_state not in (
                TaskState.DELETING,
                TaskState.SOFT_DELETING,
            ):
                request_confirm(Requests(services.api, services.cells, conductor), admin_context(), instance)
        except errors.DatabaseFailed:
            # The others' would fail alike, each after its time: they come with the next look.
            raise
        except errors.CausewayError as failure:
            LOG.info("Migration %s is not confirmed by itself: %s", migration.uuid, failure.message)
