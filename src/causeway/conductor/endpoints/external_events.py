"""External events on their way from the API to hosts."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.events import HostEvents
from causeway.parts.services import ConductorServices


class EventsEndpoint:
    """RPC: external_events."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def external_events(self, context: RequestContext, *, hosts: list[HostEvents]) -> None:
        for each in hosts:
            self._services.computes(each.cell_uuid).external_instance_events(context, each.host, events=each.events)
