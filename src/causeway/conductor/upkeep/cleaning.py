"""Sends cleanups again to hosts that are up, if they failed or were impossible when the host reported again.

Every conductor looks from time to time. While there are no cleanups, a look sends one statement to the database.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from causeway.conductor.upkeep.evacuated import EvacuatedEndpoint
from causeway.context import admin_context
from causeway.hosts.liveness import BINARY
from causeway.model.migration import EVACUATION
from causeway.model.states import MigrationStatus
from causeway.running.services import ConductorServices
from causeway.store.api import cleanups
from causeway.store.cell import hosts
from causeway.store.database import utcnow


def look(services: ConductorServices) -> None:
    """Has each host clean up, on a thread of its own, so that a host or cell that hangs delays no other."""
    waiting: dict[str, set[str]] = defaultdict(set)
    for host, cell_uuid in cleanups.hosts(services.api, evacuation=EVACUATION, evacuated=MigrationStatus.DONE):
        waiting[cell_uuid].add(host)
    work = {cell_uuid: partial(_look_in, services, cell_uuid, of_cell) for cell_uuid, of_cell in waiting.items()}
    services.by_cell("Looking for hosts to clean").each(work, services.cells.timeout)


def _look_in(services: ConductorServices, cell_uuid: str, waiting: set[str]) -> None:
    """Raises DatabaseFailed."""
    now, down_time = utcnow(), services.conf.service_down_time
    for service in hosts.list_services(services.cells.database(cell_uuid), binary=BINARY):
        # A host that was forced down may not exist, so nothing is sent to it.
        if service.host in waiting and hosts.is_up(service, now, down_time):
            clean = partial(EvacuatedEndpoint(services).clean_evacuated, admin_context(), host=service.host)
            services.by_cell("Cleaning hosts").start(f"{cell_uuid}, host {service.host}", clean)
