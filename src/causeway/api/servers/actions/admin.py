"""Actions lock, unlock, os-resetState, os-getConsoleOutput, restore, injectNetworkInfo."""

from __future__ import annotations

from causeway.api.answers import server_parts
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, schemas
from causeway.model import server_actions
from causeway.model.states import VmState


@handler(body=schemas.LOCK, statuses=(202,), answer=EMPTY)
def lock(request: ApiRequest, server_id: str) -> Response:
    home = loading.load_in_cell(request, server_id, "os_compute_api:os-lock-server:lock", "lock")
    instance = home.instance
    is_owner = instance.project_id == request.project_id
    if instance.locked and is_owner and instance.locked_by == "admin":
        # An owner's lock does not replace an administrator's.
        return Response(202)
    wanted = request.body["lock"] if request.version >= (2, 73) else None
    reason = (wanted or {}).get("locked_reason")
    locked_by = "owner" if is_owner else "admin"
    loading.begin_action(request, home, server_actions.LOCK, locked=True, locked_by=locked_by, locked_reason=reason)
    return Response(202)


@handler(body=schemas.bare("unlock"), statuses=(202,), answer=EMPTY)
def unlock(request: ApiRequest, server_id: str) -> Response:
    home = loading.load_in_cell(request, server_id, "os_compute_api:os-lock-server:unlock", "unlock")
    if home.instance.locked and home.instance.locked_by == "admin":
        request.authorize("os_compute_api:os-lock-server:unlock:unlock_override", loading.target_of(home.instance))
    loading.begin_action(request, home, server_actions.UNLOCK, locked=False, locked_by=None, locked_reason=None)
    return Response(202)


@handler(body=schemas.RESET_STATE, statuses=(202,), answer=EMPTY)
def reset_state(request: ApiRequest, server_id: str) -> Response:
    home = loading.load_in_cell(request, server_id, "os_compute_api:os-admin-actions:reset_state", "reset state")
    state = {"active": VmState.ACTIVE, "error": VmState.ERROR}[request.body["os-resetState"]["state"]]
    loading.save(request, home, vm_state=state, task_state=None)
    return Response(202)


@handler(body=schemas.CONSOLE, answer=server_parts.CONSOLE_OUTPUT)
def console_output(request: ApiRequest, server_id: str) -> Response:
    home = loading.load_in_cell(request, server_id, "os_compute_api:os-console-output", "get console output")
    loading.check_host(home.instance)
    length = request.body["os-getConsoleOutput"].get("length")
    # -1 is Nova's old way to ask for all of it.
    lines = None if length is None or int(length) < 0 else int(length)
    if lines == 0:
        return Response(200, {"output": ""})
    output = request.services.conductor.get_console_output(request.context, instance_uuid=server_id, length=lines)
    return Response(200, {"output": output})


@handler(body=[(1, None, schemas.action("injectNetworkInfo", {}))], statuses=(202,), answer=EMPTY)
def inject_network_info(request: ApiRequest, server_id: str) -> Response:
    """Does nothing, as with Nova's libvirt driver: guests learn of their network by DHCP or config drive."""
    rule = "os_compute_api:os-admin-actions:inject_network_info"
    home = loading.load_in_cell(request, server_id, rule, "injectNetworkInfo")
    loading.check_unlocked(request, home.instance)
    return Response(202)
