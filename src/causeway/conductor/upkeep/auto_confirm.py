"""Confirms resizes that no user confirmed or reverted within ``resize_confirm_window``.

The conductor looks for them itself, so this works across cells, and no compute has to ask for it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from datetime import timedelta
from functools import partial

from causeway import errors
from causeway.context import admin_context
from causeway.model.migration import Migration
from causeway.model.states import DELETING, MigrationStatus, VmState
from causeway.moves.confirmable import obstacle as obstacle_to
from causeway.moves.requests import request_confirm
from causeway.requests.of_servers import Requests
from causeway.rpc.conductor import ConductorClient
from causeway.running.services import ConductorServices
from causeway.store.api import mappings, migrations
from causeway.store.cell import instances
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

# Seconds between two checks, as in Nova.
INTERVAL = 60.0


def interval(services: ConductorServices) -> float:
    """Returns the seconds between two checks; 0 if only users confirm resizes."""
    return min(INTERVAL, float(services.conf.resize_confirm_window))


class AutoConfirm:
    """Requests the confirm of every migration that has waited for longer than the window.

    A migration is not confirmed while a host that the confirm needs is down, or within an hour of a confirm that failed.
    """

    def __init__(self) -> None:
        #: waiting migrations whose reason was logged, so that it is logged only once
        self._logged: set[str] = set()

    def __call__(self, services: ConductorServices, conductor: ConductorClient) -> None:
        waiting = migrations.search(
            services.api,
            statuses=[MigrationStatus.FINISHED],
            changes_before=utcnow() - timedelta(seconds=services.conf.resize_confirm_window),
        )
        self._logged &= {migration.uuid for migration in waiting}
        if not waiting:
            return
        homes = mappings.cells_of(services.api, [migration.instance_uuid for migration in waiting])
        by_cell: dict[str, list[Migration]] = defaultdict(list)
        for migration in waiting:
            by_cell[homes.get(migration.instance_uuid) or ""].append(migration)
        work = {cell: partial(self._of_cell, services, conductor, found) for cell, found in by_cell.items()}
        services.by_cell("Confirming resizes").each(work, services.cells.timeout)

    def _of_cell(self, services: ConductorServices, conductor: ConductorClient, waiting: list[Migration]) -> None:
        """Confirms migrations of servers of one cell."""
        for migration in waiting:
            if services.stopping.is_set():
                return
            try:
                self._confirm(services, conductor, migration)
            except errors.DatabaseFailed:
                # The other confirms would fail for the same reason, each after a timeout. The next look tries them.
                raise
            except errors.CausewayError as failure:
                LOG.info("Migration %s is not confirmed automatically: %s", migration.uuid, failure.message)

    def _confirm(self, services: ConductorServices, conductor: ConductorClient, migration: Migration) -> None:
        _cell, database = services.cells.of_server(migration.instance_uuid)
        instance = instances.get(database, migration.instance_uuid)
        if instance.vm_state is not VmState.RESIZED or instance.task_state in DELETING:
            return
        obstacle = obstacle_to(services, migration)
        if obstacle is None:
            self._logged.discard(migration.uuid)
            request_confirm(Requests(services.conf, services.api, services.cells, conductor), admin_context(), instance)
        elif migration.uuid not in self._logged:
            self._logged.add(migration.uuid)
            LOG.warning("Migration %s waits for its automatic confirm: %s", migration.uuid, obstacle)
