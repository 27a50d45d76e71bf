"""Links and times as the Compute API writes them."""

from __future__ import annotations

from datetime import datetime

from causeway.api.request import ApiRequest


def links(request: ApiRequest, collection: str, identifier: str) -> list[dict[str, str]]:
    """``self`` (versioned) and ``bookmark`` (permanent) links of one resource."""
    path = f"/{collection}/{identifier}"
    return [
        {"rel": "self", "href": request.link_root() + path},
        {"rel": "bookmark", "href": request.link_root(versioned=False) + path},
    ]


def seconds(time: datetime | None) -> str | None:
    """``2026-08-01T12:00:00Z``: how servers show times."""
    return None if time is None else time.strftime("%Y-%m-%dT%H:%M:%SZ")


def micros(time: datetime | None) -> str | None:
    """``2026-08-01T12:00:00.000000``: how everything else shows them."""
    return None if time is None else time.strftime("%Y-%m-%dT%H:%M:%S.%f")
