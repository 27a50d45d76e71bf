"""What the API reads of request specs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from causeway.api.request import ApiRequest
from causeway.store.api.mappings import SPECS


def hints_of(request: ApiRequest, uuids: list[str]) -> dict[str, dict[str, Any]]:
    """The scheduler hints that servers were created with, in one statement."""
    if not uuids:
        return {}
    query = sa.select(SPECS.c.instance_uuid, SPECS.c.spec).where(SPECS.c.instance_uuid.in_(uuids))
    with request.services.api.read() as connection:
        return {row.instance_uuid: dict(row.spec.get("scheduler_hints") or {}) for row in connection.execute(query)}
