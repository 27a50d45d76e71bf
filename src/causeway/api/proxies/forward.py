"""How calls are passed on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from causeway import errors
from causeway.api.request import ApiRequest

Query = Mapping[str, Any] | Iterable[tuple[str, Any]] | None


def ask(
    request: ApiRequest, client: Any, method: str, route: str, what: str, *, query: Query = None, **more: Any
) -> Any:
    """The answer's JSON (None if it is empty). What the other service refuses is a BadRequest, what it lacks a NotFound."""
    try:
        return client.forward(request.context, method, route, what, query=query, **more)
    except errors.ServiceRefused as refused:
        raise errors.BadRequest(refused.message, details=refused.details) from refused


def window(request: ApiRequest, found: list[Any]) -> list[Any]:
    """The part that limit and offset ask for; raises BadRequest if they are no numbers."""
    bounds = []
    for name in ("offset", "limit"):
        text = request.param(name)
        if text is not None and not (text.isascii() and text.isdigit()):
            raise errors.BadRequest(f"{name} param must be an integer")
        bounds.append(int(text) if text is not None else None)
    offset = bounds[0] or 0
    most = min(bounds[1] or len(found), int(request.services.conf.api.max_limit))
    return found[offset : offset + most]
