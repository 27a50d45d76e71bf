"""Actions os-start, os-stop, reboot."""

from __future__ import annotations

from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, schemas
from causeway.model import server_actions


@handler(body=schemas.bare("os-start"), statuses=(202,), answer=EMPTY)
def start(request: ApiRequest, server_id: str) -> Response:
    loading.load_and_begin(request, server_id, "os_compute_api:servers:start", server_actions.START)
    request.services.conductor.start_instance(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=schemas.bare("os-stop"), statuses=(202,), answer=EMPTY)
def stop(request: ApiRequest, server_id: str) -> Response:
    loading.load_and_begin(request, server_id, "os_compute_api:servers:stop", server_actions.STOP)
    request.services.conductor.stop_instance(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=schemas.REBOOT, statuses=(202,), answer=EMPTY)
def reboot(request: ApiRequest, server_id: str) -> Response:
    hard = request.body["reboot"]["type"].upper() == "HARD"
    action = server_actions.HARD_REBOOT if hard else server_actions.REBOOT
    loading.load_and_begin(request, server_id, "os_compute_api:servers:reboot", action)
    request.services.conductor.reboot_instance(request.context, instance_uuid=server_id, hard=hard)
    return Response(202)
