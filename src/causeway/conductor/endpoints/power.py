"""Starting, stopping and rebooting servers; their consoles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import TaskState, VmState
from causeway.parts import devices, history
from causeway.parts.services import ConductorServices
from causeway.rpc.compute import ComputeClient
from causeway.store.cell import block_devices, instances

REBOOTING = {
    TaskState.REBOOTING,
    TaskState.REBOOTING_HARD,
    TaskState.REBOOT_PENDING,
    TaskState.REBOOT_STARTED,
    TaskState.REBOOT_PENDING_HARD,
    TaskState.REBOOT_STARTED_HARD,
}

Work = Callable[[ComputeClient, Instance, list[BlockDevice]], GuestOutcome]


class PowerEndpoint:
    """RPC: power and console. The API has set the task state; it is cleared here, whichever way the work ends."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def start_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._do(
            context,
            instance_uuid,
            "compute_start_instance",
            "power_on",
            VmState.ACTIVE,
            {TaskState.POWERING_ON},
            lambda computes, instance, volumes: computes.power_on_instance(
                context, instance.host or "", instance=instance, block_devices=volumes
            ),
        )

    def stop_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._do(
            context,
            instance_uuid,
            "compute_stop_instance",
            "power_off",
            VmState.STOPPED,
            {TaskState.POWERING_OFF},
            lambda computes, instance, _volumes: GuestOutcome(
                computes.power_off_instance(context, instance.host or "", instance=instance),
                instance.network_info,
            ),
        )

    def reboot_instance(self, context: RequestContext, *, instance_uuid: str, hard: bool) -> None:
        self._do(
            context,
            instance_uuid,
            "compute_reboot_instance",
            "reboot",
            VmState.ACTIVE,
            REBOOTING,
            lambda computes, instance, volumes: GuestOutcome(
                computes.reboot_instance(
                    context, instance.host or "", instance=instance, block_devices=volumes, hard=hard
                ),
                instance.network_info,
            ),
        )

    def _do(self, *arguments: Any) -> None:
        change_guest(self._services, *arguments)

    def get_console_output(self, context: RequestContext, *, instance_uuid: str, length: int | None) -> str:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        if not instance.host:
            raise errors.InvalidState(f"Instance {instance_uuid} is not ready: it has no host.")
        return services.computes(cell.uuid).get_console_output(
            context, instance.host, instance_uuid=instance_uuid, length=length
        )


def change_guest(
    services: ConductorServices,
    context: RequestContext,
    uuid: str,
    event: str,
    notification: str,
    becomes: VmState,
    tasks: set[TaskState],
    work: Work,
) -> None:
    """Has the server's host do something to its guest, and writes down what came of it."""
    cell, database = services.cells.of_server(uuid)
    instance = instances.get(database, uuid)
    if instance.task_state not in tasks:
        # The server was deleted, or reset by an administrator, before we came to it.
        return
    volumes = block_devices.of_instance(database, uuid)
    services.notifier.instance_action(context, instance, notification, "start", host=instance.host or "")
    try:
        with history.event(database, context, uuid, event, instance.host or ""):
            outcome = work(services.computes(cell.uuid), instance, volumes)
    except errors.CausewayError as failure:
        history.fail(database, uuid, failure, instance.host, task_state=None, vm_state=_after_failure(event, instance))
        return
    devices.save_guest(database, uuid, outcome, vm_state=becomes, task_state=None, expected_task=tasks)
    instance.vm_state, instance.task_state, instance.power_state = becomes, None, outcome.power_state
    services.notifier.instance_action(context, instance, notification, "end", host=instance.host or "")


def _after_failure(event: str, instance: Instance) -> VmState:
    # A guest that could not be rebooted is in an unknown state; one that did not start or stop is as it was.
    return VmState.ERROR if event == "compute_reboot_instance" else instance.vm_state
