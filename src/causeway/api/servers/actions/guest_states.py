"""Actions pause, unpause, suspend, resume."""

from __future__ import annotations

from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, schemas
from causeway.model import server_actions


@handler(body=schemas.bare("pause"), statuses=(202,), answer=EMPTY)
def pause(request: ApiRequest, server_id: str) -> Response:
    loading.load_and_begin(request, server_id, "os_compute_api:os-pause-server:pause", server_actions.PAUSE)
    request.services.conductor.pause_instance(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=schemas.bare("unpause"), statuses=(202,), answer=EMPTY)
def unpause(request: ApiRequest, server_id: str) -> Response:
    loading.load_and_begin(request, server_id, "os_compute_api:os-pause-server:unpause", server_actions.UNPAUSE)
    request.services.conductor.unpause_instance(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=schemas.bare("suspend"), statuses=(202,), answer=EMPTY)
def suspend(request: ApiRequest, server_id: str) -> Response:
    loading.load_and_begin(request, server_id, "os_compute_api:os-suspend-server:suspend", server_actions.SUSPEND)
    request.services.conductor.suspend_instance(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=schemas.bare("resume"), statuses=(202,), answer=EMPTY)
def resume(request: ApiRequest, server_id: str) -> Response:
    loading.load_and_begin(request, server_id, "os_compute_api:os-suspend-server:resume", server_actions.RESUME)
    request.services.conductor.resume_instance(request.context, instance_uuid=server_id)
    return Response(202)
