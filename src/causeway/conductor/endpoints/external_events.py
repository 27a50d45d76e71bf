"""Passes external events from the API to hosts, and acts on those that concern the records."""

from __future__ import annotations

import logging

from causeway import errors
from causeway.conductor.endpoints import shown_ports
from causeway.context import RequestContext
from causeway.model.events import CHANGED, HostEvents
from causeway.running.services import ConductorServices

LOG = logging.getLogger(__name__)


class EventsEndpoint:
    """RPC: external_events."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def external_events(self, context: RequestContext, *, hosts: list[HostEvents]) -> None:
        # First the hosts, because guests may be waiting for the events there.
        for each in hosts:
            self._services.computes(each.cell_uuid).external_instance_events(context, each.host, events=each.events)
        for uuid in sorted({event.server_uuid for each in hosts for event in each.events if event.name == CHANGED}):
            self._refresh_ports(uuid)

    def _refresh_ports(self, uuid: str) -> None:
        try:
            shown_ports.refresh(self._services, uuid)
        except errors.CausewayError as failure:
            LOG.warning(
                "The ports shown for server %s were not updated: %s %s",
                uuid,
                failure.message,
                failure.details,
            )
