"""Actions os-start, os-stop, reboot."""

from __future__ import annotations

from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, schemas
from causeway.model.states import TaskState, VmState

# States in which a hard reboot may interrupt the task.
_HARD_TASKS = (
    None,
    TaskState.REBOOTING,
    TaskState.REBOOT_PENDING,
    TaskState.REBOOT_STARTED,
    TaskState.REBOOTING_HARD,
    TaskState.RESUMING,
    TaskState.UNPAUSING,
    TaskState.PAUSING,
    TaskState.SUSPENDING,
)
_HARD_STATES = (VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED, VmState.ERROR)


def _take(
    request: ApiRequest,
    server_id: str,
    rule: str,
    action: str,
    task_state: TaskState,
    vm: tuple[VmState, ...],
    task: tuple[TaskState | None, ...] = loading.IDLE,
) -> None:
    home = loading.load_in_cell(request, server_id, rule, action, after_snapshot=True)
    loading.check_unlocked(request, home.instance)
    loading.check_host(home.instance)
    loading.check_state(home.instance, action, vm=vm, task=task)
    loading.begin(request, home, action, expected_task=task, expected_vm=vm, task_state=task_state)


@handler(body=schemas.bare("os-start"), statuses=(202,), answer=EMPTY)
def start(request: ApiRequest, server_id: str) -> Response:
    rule = "os_compute_api:servers:start"
    _take(request, server_id, rule, "start", TaskState.POWERING_ON, (VmState.STOPPED,))
    request.services.conductor.start_instance(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=schemas.bare("os-stop"), statuses=(202,), answer=EMPTY)
def stop(request: ApiRequest, server_id: str) -> Response:
    rule = "os_compute_api:servers:stop"
    _take(request, server_id, rule, "stop", TaskState.POWERING_OFF, (VmState.ACTIVE, VmState.ERROR))
    request.services.conductor.stop_instance(request.context, instance_uuid=server_id)
    return Response(202)


@handler(body=schemas.REBOOT, statuses=(202,), answer=EMPTY)
def reboot(request: ApiRequest, server_id: str) -> Response:
    hard = request.body["reboot"]["type"].upper() == "HARD"
    rule = "os_compute_api:servers:reboot"
    if hard:
        _take(request, server_id, rule, "reboot", TaskState.REBOOTING_HARD, _HARD_STATES, _HARD_TASKS)
    else:
        _take(request, server_id, rule, "reboot", TaskState.REBOOTING, (VmState.ACTIVE,))
    request.services.conductor.reboot_instance(request.context, instance_uuid=server_id, hard=hard)
    return Response(202)
