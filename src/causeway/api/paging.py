"""Pages of lists: limit, marker, and the link to the next one. Source: Compute API guide, "Paginated collections"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from causeway import errors
from causeway.api.request import ApiRequest

T = TypeVar("T")


def limit_of(request: ApiRequest) -> int:
    """How many entries a page has at most: ``limit``, but never more than ``[api] max_limit``."""
    most: int = request.services.conf.api.max_limit
    text = request.param("limit")
    if text is None:
        return most
    if not (text.isascii() and text.isdigit()):
        raise errors.BadRequest("limit must be an integer" if not text.startswith("-") else "limit must be >= 0")
    return min(int(text), most)


def page(
    request: ApiRequest, entries: list[T], key: Callable[[T], Any], *, marker_missing: str = "marker [{}] not found"
) -> list[T]:
    """The page of a whole list that ``limit`` and ``marker`` ask for; raises BadRequest for an unknown marker."""
    marker = request.param("marker")
    start = 0
    if marker is not None:
        found = next((index for index, entry in enumerate(entries) if str(key(entry)) == marker), None)
        if found is None:
            raise errors.BadRequest(marker_missing.format(marker))
        start = found + 1
    return entries[start : start + limit_of(request)]


def next_link(request: ApiRequest, path: str, entries: list[Any], last_id: Any) -> list[dict[str, str]]:
    """The ``*_links`` of a page: a link to the next one if this one is full, else nothing."""
    limit = limit_of(request)
    if not limit or len(entries) < limit:
        return []
    query = [(name, value) for name, values in request.query.items() if name != "marker" for value in values]
    return [{"rel": "next", "href": request.self_url(path, [*query, ("marker", str(last_id))])}]
