"""Plans drains, and has the conductor look at them after a request."""

from __future__ import annotations

from collections.abc import Callable

from causeway.context import RequestContext
from causeway.drains.plan import plan_of
from causeway.model.drains import DrainRequest, Plan
from causeway.running.services import ConductorServices


class DrainsEndpoint:
    """RPC: plan_drain, look_at_drains. ``look``: starts a look at the drains soon, and returns at once."""

    def __init__(self, services: ConductorServices, look: Callable[[], None]) -> None:
        self._services = services
        self._look = look

    def plan_drain(self, context: RequestContext, *, request: DrainRequest) -> Plan:
        return plan_of(self._services, context, request)

    def look_at_drains(self, context: RequestContext) -> None:  # noqa: ARG002
        self._look()
