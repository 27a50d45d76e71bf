"""All routes of servers."""

from __future__ import annotations

from causeway.api.dispatch import Route
from causeway.api.servers import listing, show

ROUTES: list[Route] = [
    Route("GET", "/servers", listing.index),
    Route("GET", "/servers/detail", listing.detail),
    Route("GET", "/servers/{server_id}", show.show),
]
