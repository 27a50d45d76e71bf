"""Confirms resizes that nobody confirmed or reverted within ``resize_confirm_window``.

By the conductor, so it works across cells without a compute asking for anything.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from causeway import errors
from causeway.conductor.services import ConductorServices
from causeway.context import admin_context
from causeway.model.states import MigrationStatus, TaskState, VmState
from causeway.moves.requests import Requests, request_confirm
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import migrations
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
    for migration in waiting:
        try:
            _cell, database = services.cells.of_server(migration.instance_uuid)
            instance = instances.get(database, migration.instance_uuid)
            if instance.vm_state is VmState.RESIZED and instance.task_state not in (
                TaskState.DELETING,
                TaskState.SOFT_DELETING,
            ):
                request_confirm(Requests(services.api, services.cells, conductor), admin_context(), instance)
        except errors.CausewayError as failure:
            LOG.info("Migration %s is not confirmed by itself: %s", migration.uuid, failure.message)
