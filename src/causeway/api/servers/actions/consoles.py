"""URLs of consoles: ``/servers/{id}/remote-consoles``, and the actions that it replaced."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from causeway import errors
from causeway.api.answers import server_parts
from causeway.api.request import ApiRequest, Handler, JsonSchema, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.api.servers import loading
from causeway.api.servers.schemas import action, fields
from causeway.model.console import ConsoleType
from causeway.model.states import DELETING, TaskState, VmState
from causeway.store.api import console_tokens

_RULE = "os_compute_api:os-remote-consoles"
# What our hypervisors have. Nova knows others, which are unavailable here.
_PROTOCOLS = {ConsoleType.NOVNC.value: "vnc", ConsoleType.SERIAL.value: "serial"}
_NOT_WHILE = DELETING | {TaskState.MIGRATING}

_VALUES = ["vnc", "spice", "serial", "rdp"], ["novnc", "xvpvnc", "spice-html5", "serial", "rdp-html5"]


def _remote(protocols: list[str], types: list[str]) -> JsonSchema:
    return common.body(
        "remote_console", common.properties(["protocol", "type"], protocol={"enum": protocols}, type={"enum": types})
    )


_BODIES: VersionedSchemas = [
    (6, 7, _remote(*_VALUES)),
    (8, 98, _remote([*_VALUES[0], "mks"], [*_VALUES[1], "webmks"])),
    (99, None, _remote([*_VALUES[0], "mks"], [*_VALUES[1], "webmks", "spice-direct"])),
]


@handler(body=_BODIES, answer=server_parts.REMOTE_CONSOLE)
def create(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["remote_console"]
    if wanted["protocol"] == "rdp":
        # Neither our drivers nor Nova's have it any more.
        raise errors.BadRequest("There are no RDP consoles any more.")
    url = _open(request, server_id, wanted["protocol"], wanted["type"])
    return Response(200, {"remote_console": {"protocol": wanted["protocol"], "type": wanted["type"], "url": url}})


def by_action(name: str, protocol: str, *types: str) -> Handler:
    """The action that opened consoles before 2.6."""
    schema = fields({"type": {"type": "string", "enum": list(types)}}, ("type",))

    def run(request: ApiRequest, server_id: str) -> Response:
        kind = request.body[name]["type"]
        return Response(200, {"console": {"type": kind, "url": _open(request, server_id, protocol, kind)}})

    run.__doc__ = f"A URL of a console: {', '.join(types)}."
    made: Callable[..., Handler] = handler(body=[(1, 5, action(name, schema))], answer=server_parts.CONSOLE)
    return made(run)


def _open(request: ApiRequest, server_id: str, protocol: str, kind: str) -> str:
    """The URL of a console of the server, with a new token. Raises Conflict if the guest is not ready."""
    what = f"get {protocol} console"
    home = loading.load_in_cell(request, server_id, _RULE, what, tags=False)
    if _PROTOCOLS.get(kind) != protocol:
        raise errors.ConsoleTypeUnavailable.of(kind)
    instance = home.instance
    if instance.vm_state is VmState.BUILDING:
        raise errors.InvalidState.for_action(what, server_id, "vm_state", instance.vm_state.value)
    if instance.task_state in _NOT_WHILE:
        raise errors.InvalidState.for_action(what, server_id, "task_state", instance.task_state)
    loading.check_host(instance)
    services, wanted = request.services, ConsoleType(kind)
    try:
        place = services.conductor.get_console(request.context, instance_uuid=server_id, console_type=wanted)
    except errors.GuestFailed as failure:
        raise errors.Conflict(f"Instance {server_id} is not ready: {failure.message}") from failure
    seconds = services.conf.consoleauth.token_ttl
    token = console_tokens.create(services.api, place, wanted, server_id, seconds)
    return _with_token(place.address.access_url_base, wanted, token)


def _with_token(base: str, kind: ConsoleType, token: str) -> str:
    """The URL with the token. noVNC's page takes it inside of a parameter: the path of the WebSocket."""
    parts = urlsplit(base)
    given = {"path": f"?{urlencode({'token': token})}"} if kind is ConsoleType.NOVNC else {"token": token}
    return urlunsplit(parts._replace(query=urlencode(dict(parse_qsl(parts.query)) | given)))
