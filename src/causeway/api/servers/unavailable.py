"""Operations on servers that are `Unavailable`: body, server and policy are checked, then they are refused."""

from __future__ import annotations

from causeway import errors
from causeway.api.dispatch import Route
from causeway.api.request import ApiRequest, Handler, JsonSchema, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.api.servers import loading
from causeway.api.servers.schemas import action, fields
from causeway.api.unavailable import Unavailable


def _console_type(*types: str) -> JsonSchema:
    return fields({"type": {"type": "string", "enum": list(types)}}, ("type",))


def _refuse(what: Unavailable, rule: str, body: VersionedSchemas | None = None) -> Handler:
    def run(request: ApiRequest, server_id: str) -> Response:
        loading.load(request, server_id, f"os_compute_api:{rule}", columns=frozenset(), tags=False)
        raise what.refusal(f"server {server_id}")

    run.__doc__ = f"{what.what}: not there yet."
    return handler(body=body)(run)


def _action(
    name: str, what: Unavailable, rule: str, value: JsonSchema, first: int = 1, last: int | None = None
) -> Route:
    refused = _refuse(what, rule, [(1, None, action(name, value))])
    return Route("POST", "/servers/{server_id}/action", refused, first, last, action=name)


_CONSOLES = "os-remote-consoles"
ACTIONS = [
    _action("os-getVNCConsole", Unavailable.VNC_CONSOLE, _CONSOLES, _console_type("novnc", "xvpvnc"), 1, 5),
    _action("os-getSPICEConsole", Unavailable.SPICE_CONSOLE, _CONSOLES, _console_type("spice-html5"), 1, 5),
    _action("os-getSerialConsole", Unavailable.SERIAL_CONSOLE, _CONSOLES, _console_type("serial"), 1, 5),
]

_PROTOCOLS, _TYPES = ["vnc", "spice", "serial", "rdp"], ["novnc", "xvpvnc", "spice-html5", "serial", "rdp-html5"]


def _remote(protocols: list[str], types: list[str]) -> JsonSchema:
    return common.body(
        "remote_console", common.properties(["protocol", "type"], protocol={"enum": protocols}, type={"enum": types})
    )


_REMOTE_CONSOLES: VersionedSchemas = [
    (6, 7, _remote(_PROTOCOLS, _TYPES)),
    (8, 98, _remote([*_PROTOCOLS, "mks"], [*_TYPES, "webmks"])),
    (99, None, _remote([*_PROTOCOLS, "mks"], [*_TYPES, "webmks", "spice-direct"])),
]


@handler(body=_REMOTE_CONSOLES)
def remote_consoles(request: ApiRequest, server_id: str) -> Response:
    if "rdp" in request.body["remote_console"]["protocol"]:
        # No driver has it any more, in the field neither.
        raise errors.BadRequest("There are no RDP consoles any more.")
    loading.load(request, server_id, f"os_compute_api:{_CONSOLES}", columns=frozenset(), tags=False)
    raise Unavailable.REMOTE_CONSOLE.refusal(f"server {server_id}")
