"""Holds: a policy rule says who may set a server's property ``causeway:hold`` (`causeway.model.holds`)."""

from __future__ import annotations

from collections.abc import Mapping

from causeway.api.request import ApiRequest
from causeway.model.holds import PROPERTY, held_until

RULE = "causeway:servers:hold"


def check(request: ApiRequest, project_id: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raises Forbidden if the caller may not set, change or unset a hold, and BadRequest if the hold is not a date."""
    if before.get(PROPERTY) == after.get(PROPERTY):
        return
    request.authorize(RULE, {"project_id": project_id})
    held_until(after)
