"""What the API says of itself, version by version: found in the route table, so that no test has a list of its own."""

from __future__ import annotations

from typing import Any

from causeway.api import versions
from causeway.api.dispatch import Route, query_schema
from causeway.api.request import schema_for
from causeway.api.routes import ROUTES

LAST = versions.MAX.minor


def said_of(route: Route, minor: int) -> Any:
    """All that a version's description says of a route; None: the version has not got it."""
    if not route.serves(minor):
        return None
    handler = route.handler
    body = None if handler.body is None else schema_for(handler.body, minor)
    return body, query_schema(route, minor), schema_for(handler.answer, minor), handler.statuses_at(minor)


def changes() -> dict[int, list[Route]]:
    """minor version -> the routes of which it says anything else than the version before it."""
    found: dict[int, list[Route]] = {}
    for route in ROUTES:
        before = None
        for minor in range(1, LAST + 1):
            said = said_of(route, minor)
            if said is not None and said != before:
                found.setdefault(minor, []).append(route)
            before = said
    return dict(sorted(found.items()))


def parameters(route: Route, minor: int) -> set[str]:
    """The query parameters that are known."""
    return set((query_schema(route, minor) or {}).get("properties", {}))
