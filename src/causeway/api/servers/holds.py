"""Who may ask that a server is not moved yet: its property ``causeway:hold`` (`causeway.parts.holds`) has a rule of its own."""

from __future__ import annotations

from collections.abc import Mapping

from causeway.api.request import ApiRequest
from causeway.parts.holds import PROPERTY, held_until

RULE = "causeway:servers:hold"


def check(request: ApiRequest, project_id: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raises Forbidden if a hold is set, changed or unset by a caller who may not, and BadRequest if it is no date."""
    if before.get(PROPERTY) == after.get(PROPERTY):
        return
    request.authorize(RULE, {"project_id": project_id})
    held_until(after)
