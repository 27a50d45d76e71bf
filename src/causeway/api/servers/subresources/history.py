"""``/servers/{server_id}/os-instance-actions``: what was done to a server, also to a deleted one (2.21)."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api import changes, paging
from causeway.api.answers import server_parts
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, schemas
from causeway.api.servers.views import host_id
from causeway.api.validation import is_uuid
from causeway.api.views.common import micros
from causeway.model.instance import ActionEvent, InstanceAction
from causeway.store.api import mappings
from causeway.store.api.mappings import InstanceMapping
from causeway.store.cell import actions
from causeway.store.database import Database

RULE = "os_compute_api:os-instance-actions:"


def _find(request: ApiRequest, server_id: str, rule: str) -> tuple[InstanceMapping, Database | None]:
    """The server's mapping, and its cell's database (None if it has no cell yet, and so no history)."""
    if request.version < (2, 21):
        loading.load(request, server_id, RULE + rule, columns=frozenset(), tags=False)
    if not is_uuid(server_id):
        raise errors.ServerNotFound(server_id)
    mapping = mappings.get(request.services.api, server_id)
    if not request.context.is_admin and mapping.project_id != request.project_id:
        raise errors.ServerNotFound(server_id)
    request.authorize(RULE + rule, _target(mapping))
    if mapping.cell_uuid is None:
        return mapping, None
    return mapping, request.services.cells.database(mapping.cell_uuid)


def _target(mapping: InstanceMapping) -> dict[str, Any]:
    return {"project_id": mapping.project_id, "user_id": mapping.user_id}


@handler(query=schemas.LIST_ACTIONS, answer=server_parts.ACTIONS)
def index(request: ApiRequest, server_id: str) -> Response:
    _mapping, database = _find(request, server_id, "list")
    if request.version < (2, 58):
        found = [] if database is None else actions.of_instance(database, server_id)
        return Response(200, {"instanceActions": [_action(request, action) for action in found]})
    limit, marker = paging.limit_of(request), request.param("marker")
    changes_since, changes_before = changes.window(request.param("changes-since"), request.param("changes-before"))
    if marker is not None and (database is None or actions.get(database, server_id, marker) is None):
        raise errors.BadRequest(f"marker [{marker}] not found")
    found = []
    if database is not None:
        found = actions.of_instance(
            database,
            server_id,
            limit=limit + 1,
            marker=marker,
            changes_since=changes_since,
            changes_before=changes_before,
        )
    body: dict[str, Any] = {"instanceActions": [_action(request, action) for action in found[:limit]]}
    if limit and len(found) > limit:
        query = [(name, value) for name, values in request.query.items() if name != "marker" for value in values]
        path = f"/servers/{server_id}/os-instance-actions"
        href = request.self_url(path, [*query, ("marker", found[limit - 1].request_id)])
        body["links"] = [{"rel": "next", "href": href}]
    return Response(200, body)


@handler(answer=server_parts.ACTION)
def show(request: ApiRequest, server_id: str, request_id: str) -> Response:
    mapping, database = _find(request, server_id, "show")
    action = None if database is None else actions.get(database, server_id, request_id)
    if action is None:
        raise errors.NotFound(f"Action {request_id} not found")
    shown = _action(request, action)
    inner = request.allows(RULE + "events", _target(mapping))
    if inner or request.version >= (2, 51):
        details = request.version >= (2, 84) and request.allows(RULE + "events:details", _target(mapping))
        shown["events"] = [_event(request, mapping.project_id, event, inner, details) for event in action.events]
    return Response(200, {"instanceAction": shown})


def _action(request: ApiRequest, action: InstanceAction) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "action": action.action,
        "instance_uuid": action.instance_uuid,
        "request_id": action.request_id,
        "user_id": action.user_id,
        "project_id": action.project_id,
        "start_time": micros(action.start_time),
        "message": action.message,
    }
    if request.version >= (2, 58):
        shown["updated_at"] = micros(action.updated_at)
    return shown


def _event(request: ApiRequest, project_id: str, event: ActionEvent, inner: bool, details: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "event": event.event,
        "start_time": micros(event.start_time),
        "finish_time": micros(event.finish_time),
        "result": event.result,
    }
    if inner:
        shown["traceback"] = event.traceback
    if request.version >= (2, 62):
        if inner:
            shown["host"] = event.host
        shown["hostId"] = host_id(project_id, event.host)
    if details:
        shown["details"] = event.details
    return shown
