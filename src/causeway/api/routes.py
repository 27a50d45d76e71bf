"""The whole REST API. Paths are below ``/v2.1`` and ``/v2.1/{project_id}`` (and ``/v2``, the legacy endpoint).

A row: method, path, handler, the first and the last minor version that has it. ``action`` rows share a path and are
told apart by the key of the body.
"""

from __future__ import annotations

from causeway.api import flavors
from causeway.api.dispatch import Route
from causeway.api.request import Handler


def _get(path: str, handler: Handler, first: int = 1, last: int | None = None) -> Route:
    return Route("GET", path, handler, first, last)


def _post(path: str, handler: Handler, first: int = 1, last: int | None = None) -> Route:
    return Route("POST", path, handler, first, last)


def _put(path: str, handler: Handler, first: int = 1, last: int | None = None) -> Route:
    return Route("PUT", path, handler, first, last)


def _delete(path: str, handler: Handler, first: int = 1, last: int | None = None) -> Route:
    return Route("DELETE", path, handler, first, last)


def _action(path: str, name: str, handler: Handler, first: int = 1, last: int | None = None) -> Route:
    return Route("POST", path, handler, first, last, action=name)


ROUTES: list[Route] = [
    # Flavors
    _get("/flavors", flavors.index),
    _post("/flavors", flavors.create),
    _get("/flavors/detail", flavors.detail),
    _get("/flavors/{flavor_id}", flavors.show),
    _put("/flavors/{flavor_id}", flavors.update, 55),
    _delete("/flavors/{flavor_id}", flavors.delete),
]
