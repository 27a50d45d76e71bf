"""External events: every host that may wait for one gets it, each through its own cell."""

from __future__ import annotations

import logging

from causeway import errors
from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext
from causeway.model.events import ExternalEvent
from causeway.model.instance import Instance
from causeway.store.cell import instances

LOG = logging.getLogger(__name__)


def hosts_of(instance: Instance, cell_uuid: str) -> set[tuple[str, str]]:
    """(cell uuid, host) of every host that works for the server: both ends, while it is being moved."""
    found = {(cell_uuid, instance.host)} if instance.host else set()
    moving = instance.migration_context
    if moving is not None:
        for cell, host in ((moving.source_cell, moving.source_host), (moving.dest_cell, moving.dest_host)):
            if cell and host:
                found.add((cell, host))
    return found


class EventsEndpoint:
    """RPC: external_events."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def external_events(self, context: RequestContext, *, events: list[ExternalEvent]) -> None:
        by_server: dict[str, list[ExternalEvent]] = {}
        for event in events:
            by_server.setdefault(event.server_uuid, []).append(event)
        for uuid, of_server in by_server.items():
            try:
                cell, database = self._services.cells.of_server(uuid)
                instance = instances.get(database, uuid, with_tags=False)
            except errors.ServerNotFound:
                LOG.debug("Events for server %s, which is not there", uuid)
                continue
            for cell_uuid, host in hosts_of(instance, cell.uuid):
                self._services.computes(cell_uuid).external_instance_events(context, host, events=of_server)
