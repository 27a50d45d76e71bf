"""Confirms resizes that nobody confirmed or reverted within ``resize_confirm_window``.

By the conductor, so it works across cells without a compute asking for anything.
"""

from __future__ import annotations

import logging
import threading
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


class AutoConfirm:
    """Looks from time to time, on a thread of its own; does nothing at all if the window is 0."""

    def __init__(self, services: ConductorServices, conductor: ConductorClient) -> None:
        self._services = services
        self._conductor = conductor
        self._window: int = services.conf.resize_confirm_window
        self._thread = threading.Thread(target=self._run, name="auto-confirm", daemon=True)

    def start(self) -> None:
        if self._window > 0:
            self._thread.start()

    def stop(self) -> None:
        """``services.stopping`` must have been set."""
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._services.stopping.wait(min(INTERVAL, self._window)):
            try:
                self.look()
            except errors.CausewayError as failure:
                LOG.warning("Unconfirmed resizes can't be looked for: %s %s", failure.message, failure.details)

    def look(self) -> None:
        """Asks for the confirm of every migration that waits for longer than the window."""
        waiting = migrations.search(
            self._services.api,
            statuses=[MigrationStatus.FINISHED],
            changes_before=utcnow() - timedelta(seconds=self._window),
        )
        for migration in waiting:
            try:
                _cell, database = self._services.cells.of_server(migration.instance_uuid)
                instance = instances.get(database, migration.instance_uuid)
                if instance.vm_state is VmState.RESIZED and instance.task_state not in (
                    TaskState.DELETING,
                    TaskState.SOFT_DELETING,
                ):
                    requests = Requests(self._services.api, self._services.cells, self._conductor)
                    request_confirm(requests, admin_context(), instance)
            except errors.CausewayError as failure:
                LOG.info("Migration %s is not confirmed by itself: %s", migration.uuid, failure.message)
