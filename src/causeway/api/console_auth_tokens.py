"""``/os-console-auth-tokens``: where a console is that a token was given for. There are no consoles yet, so no token is known."""

from __future__ import annotations

from causeway import errors
from causeway.api.request import ApiRequest, Response, VersionedSchemas, handler
from causeway.api.schemas import common

_QUERY: VersionedSchemas = [(1, 98, common.query({})), (99, None, common.query({}, strict=True))]


@handler(query=_QUERY)
def show(request: ApiRequest, **_token: str) -> Response:
    if request.version < (2, 31):
        # Until then it was for RDP consoles only, which the field has no more either.
        raise errors.BadRequest("Tokens of consoles can be shown from microversion 2.31 on.")
    request.authorize("os_compute_api:os-console-auth-tokens", {})
    raise errors.NotFound("Token not found")
