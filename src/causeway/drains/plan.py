"""The plan of a drain: what would happen to each server, and to all of them together."""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.drains import DrainRequest, Plan
from causeway.parts.services import ConductorServices


def plan_of(services: ConductorServices, context: RequestContext, request: DrainRequest) -> Plan:
    """Changes nothing. Raises BadRequest for what can't be asked for."""
    raise errors.ServiceFailed("Drains can't be planned yet.")
