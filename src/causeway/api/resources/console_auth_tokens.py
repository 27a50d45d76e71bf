"""``/os-console-auth-tokens``: where the console is that a token opens, for console proxies other than ours."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.answers import server_parts
from causeway.api.request import ApiRequest, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.store.api import console_tokens
from causeway.store.consoles import standings

_QUERY: VersionedSchemas = [(1, 98, common.query({})), (99, None, common.query({}, strict=True))]


@handler(query=_QUERY, answer=server_parts.CONSOLE_OF_TOKEN)
def show(request: ApiRequest, console_token: str) -> Response:
    if request.version < (2, 31):
        # Earlier versions have RDP consoles only, which Nova no longer has either.
        raise errors.BadRequest("Tokens of consoles can be shown from microversion 2.31 on.")
    request.authorize("os_compute_api:os-console-auth-tokens", {})
    found = console_tokens.find(request.services.api, console_token)
    if found is None:
        raise errors.NotFound("Token not found")
    token, _seconds = found
    standing = standings(request.services.cells, [token]).get(token.token_hash)
    if standing is None:
        raise errors.CellDown(
            f"The console of instance {token.instance_uuid} can't be found: its cell does not answer now. Try again later."
        )
    if standing.ending is not None:
        raise errors.NotFound(f"Token not found: {standing.ending.sentence(token.instance_uuid)}")
    console: dict[str, Any] = {
        "instance_uuid": token.instance_uuid,
        "host": token.host,
        "port": token.port,
        # Only consoles of other hypervisors have one.
        "internal_access_path": None,
    }
    if request.version >= (2, 99):
        # Only SPICE servers with TLS have one; there are none here.
        console["tls_port"] = None
    return Response(200, {"console": console})
