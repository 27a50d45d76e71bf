"""``GET /servers/{server_id}``."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.answers import servers as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import hosts, loading, specs
from causeway.api.servers.views import WITH_FAULT, WITH_GROUPS, Extras, ServerView
from causeway.store.api import groups, mappings
from causeway.store.cell import actions
from causeway.store.listing import Listed

SHOW = "os_compute_api:servers:show"


@handler(answer=answers.SHOW)
def show(request: ApiRequest, server_id: str) -> Response:
    view = ServerView(request)
    try:
        found = loading.load(
            request,
            server_id,
            SHOW,
            columns=view.columns(),
            tags=view.minor >= 26,
            volumes=True,
            group=view.minor >= WITH_GROUPS,
        )
    except errors.DatabaseFailed:
        if view.minor < 69:
            raise
        return Response(200, {"server": _of_down_cell(request, view, server_id)})
    return Response(200, {"server": whole(request, view, found)})


def whole(request: ApiRequest, view: ServerView, found: Listed) -> dict[str, Any]:
    """The server with all that the version shows. From `WITH_GROUPS` on, ``found`` must have been read with its group."""
    services, uuid, host = request.services, found.uuid, found.values["host"]
    extras = Extras()
    sight = view.sight(found)
    if found.cell_uuid is not None and found.status in WITH_FAULT:
        faults = actions.latest_faults(services.cells.database(found.cell_uuid), [uuid])
        extras.fault = faults.get(uuid)
    if view.minor >= WITH_GROUPS:
        extras.groups = [found.group] if found.group else []
    if sight.host_status or sight.unknown_host:
        service = hosts.service_of(request, host, found.cell_uuid) if host and found.cell_uuid else None
        extras.host_status = hosts.shown_status(host, sight, hosts.status_of(request, service))
    if view.minor >= 100:
        extras.hints = specs.hints_of(request, [uuid]).get(uuid, {})
    return view.detail(found, extras)


def _of_down_cell(request: ApiRequest, view: ServerView, server_id: str) -> dict[str, Any]:
    """What is known of a server whose cell does not answer. Raises ServerNotFound. Source: API guide, "Down cells"."""
    mapping = mappings.get(request.services.api, server_id)
    if mapping.queued_for_delete or (not request.context.is_admin and mapping.project_id != request.project_id):
        raise errors.ServerNotFound(server_id)
    request.authorize(SHOW, {"project_id": mapping.project_id, "user_id": mapping.user_id})
    server = view.of_down_cell(mapping, mappings.get_spec(request.services.api, server_id))
    if view.minor >= WITH_GROUPS:
        group = groups.of_server(request.services.api, server_id)
        server["server_groups"] = [group.uuid] if group else []
    return server
