"""Passes calls on to other services."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from causeway import errors
from causeway.api.request import ApiRequest, VersionedSchemas
from causeway.api.schemas import common

WINDOW: VersionedSchemas = [
    (1, None, common.query({"limit": common.many(common.NUMBER), "offset": common.many(common.NUMBER)}))
]

Query = Mapping[str, Any] | Iterable[tuple[str, Any]] | None


def ask(
    request: ApiRequest, client: Any, method: str, route: str, what: str, *, query: Query = None, **more: Any
) -> Any:
    """The answer's JSON; None if it is empty. Raises BadRequest if the service refuses, NotFound if it has no such thing."""
    try:
        return client.forward(request.context, method, route, what, query=query, **more)
    except errors.ServiceRefused as refused:
        raise errors.BadRequest(refused.message, details=refused.details) from refused


def window(request: ApiRequest, found: list[Any]) -> list[Any]:
    """The part that limit and offset (`WINDOW`) ask for."""
    offset, limit = (int(request.param(name) or 0) for name in ("offset", "limit"))
    return found[offset : offset + min(limit or len(found), int(request.services.conf.api.max_limit))]
