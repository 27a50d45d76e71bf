"""Actions pause, unpause, suspend, resume."""

from __future__ import annotations

from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, schemas
from causeway.model import server_actions
from causeway.model.server_actions import ServerAction


def _take(request: ApiRequest, server_id: str, area: str, action: ServerAction) -> None:
    home = loading.take(request, server_id, f"os_compute_api:{area}:{action.name}", action)
    loading.begin_action(request, home, action)


@handler(body=schemas.bare("pause"), statuses=(202,), answer=EMPTY)
def pause(request: ApiRequest, server_id: str) -> Response:
    _take(request, server_id, "os-pause-server", server_actions.PAUSE)
    request.services.conductor.pause_instance(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=schemas.bare("unpause"), statuses=(202,), answer=EMPTY)
def unpause(request: ApiRequest, server_id: str) -> Response:
    _take(request, server_id, "os-pause-server", server_actions.UNPAUSE)
    request.services.conductor.unpause_instance(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=schemas.bare("suspend"), statuses=(202,), answer=EMPTY)
def suspend(request: ApiRequest, server_id: str) -> Response:
    _take(request, server_id, "os-suspend-server", server_actions.SUSPEND)
    request.services.conductor.suspend_instance(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=schemas.bare("resume"), statuses=(202,), answer=EMPTY)
def resume(request: ApiRequest, server_id: str) -> Response:
    _take(request, server_id, "os-suspend-server", server_actions.RESUME)
    request.services.conductor.resume_instance(request.context, instance_uuid=server_id)
    return Response(202)
