"""Events of other services that concern servers of this host."""

from __future__ import annotations

import logging

from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.events import ExternalEvent

LOG = logging.getLogger(__name__)


class EventsEndpoint:
    """RPC: delivers external events to threads that wait for them."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def external_instance_events(self, context: RequestContext, *, events: list[ExternalEvent]) -> None:  # noqa: ARG002
        for event in events:
            if not self._host.vif_events.deliver(event):
                LOG.debug("Nobody on %s waits for %s of server %s", self._host.name, event.name, event.server_uuid)
