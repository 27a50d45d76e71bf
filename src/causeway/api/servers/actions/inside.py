"""Diagnostics of a server; actions trigger_crash_dump, os-guestTrim and changePassword."""

from __future__ import annotations

from causeway import errors
from causeway.api.answers import server_parts
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas.common import NOTHING
from causeway.api.servers import loading, schemas
from causeway.api.views import diagnostics as view
from causeway.model import server_actions


@handler(answer=server_parts.DIAGNOSTICS)
def diagnostics(request: ApiRequest, server_id: str) -> Response:
    rule = "os_compute_api:os-server-diagnostics"
    home = loading.load_in_cell(request, server_id, rule, "get diagnostics", tags=False)
    loading.check_host(home.instance)
    try:
        found = request.services.conductor.get_diagnostics(request.context, instance_uuid=server_id)
    except errors.GuestFailed as failure:
        raise errors.Conflict(failure.message) from failure
    if request.version >= (2, 48):
        return Response(200, view.standard(found, home.instance))
    return Response(200, view.flat(found))


@handler(body=[(17, None, schemas.action("trigger_crash_dump", NOTHING))], statuses=(202,), answer=EMPTY)
def trigger_crash_dump(request: ApiRequest, server_id: str) -> Response:
    rule = "os_compute_api:servers:trigger_crash_dump"
    loading.load_and_begin(request, server_id, rule, server_actions.TRIGGER_CRASH_DUMP)
    request.services.conductor.trigger_crash_dump(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=[(1, None, schemas.action("os-guestTrim", NOTHING))], statuses=(202,), answer=EMPTY)
def trim(request: ApiRequest, server_id: str) -> Response:
    loading.load_and_begin(request, server_id, "causeway:servers:guest_trim", server_actions.GUEST_TRIM)
    request.services.conductor.trim_guest(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=schemas.CHANGE_PASSWORD, statuses=(202,), answer=EMPTY)
def change_password(request: ApiRequest, server_id: str) -> Response:
    """Sets the password before it answers, in spite of the status 202, as in Nova."""
    rule = "os_compute_api:os-admin-password"
    home = loading.load_and_begin(request, server_id, rule, server_actions.CHANGE_PASSWORD)
    password = request.body["changePassword"]["adminPass"]
    try:
        request.services.conductor.set_admin_password(request.context, instance_uuid=server_id, password=password)
    except errors.GuestFailed as failure:
        raise errors.Conflict(f"The password of server {server_id} was not set: {failure.message}") from failure
    except errors.ServiceFailed:
        # Perhaps no conductor got the request.
        loading.clear_task(home)
        raise
    return Response(202)
