"""Starts, stops and reboots servers, and reads their consoles."""

from __future__ import annotations

from collections.abc import Callable

from causeway import errors
from causeway.context import RequestContext
from causeway.devices import device_records
from causeway.hosts import liveness
from causeway.model import server_actions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.server_actions import GuestAction
from causeway.rpc.compute import ComputeClient
from causeway.running.services import ConductorServices
from causeway.store import history
from causeway.store.cell import block_devices, instances

Work = Callable[[ComputeClient, Instance, list[BlockDevice]], GuestOutcome]


class PowerEndpoint:
    """RPC: power and console. The API has set the task state; these methods clear it, even if they fail."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def start_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        def work(computes: ComputeClient, instance: Instance, volumes: list[BlockDevice]) -> GuestOutcome:
            return computes.power_on_instance(context, instance.host or "", instance=instance, block_devices=volumes)

        change_guest(self._services, context, instance_uuid, server_actions.START, work)

    def stop_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        def work(computes: ComputeClient, instance: Instance, _volumes: list[BlockDevice]) -> GuestOutcome:
            power_state = computes.power_off_instance(context, instance.host or "", instance=instance)
            return GuestOutcome(power_state, instance.network_info)

        change_guest(self._services, context, instance_uuid, server_actions.STOP, work)

    def reboot_instance(self, context: RequestContext, *, instance_uuid: str, hard: bool) -> None:
        def work(computes: ComputeClient, instance: Instance, volumes: list[BlockDevice]) -> GuestOutcome:
            power_state = computes.reboot_instance(
                context, instance.host or "", instance=instance, block_devices=volumes, hard=hard
            )
            return GuestOutcome(power_state, instance.network_info)

        action = server_actions.HARD_REBOOT if hard else server_actions.REBOOT
        change_guest(self._services, context, instance_uuid, action, work)

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
    services: ConductorServices, context: RequestContext, uuid: str, action: GuestAction, work: Work
) -> None:
    """Has the server's host do ``work`` with its guest. Records the outcome with the states that ``action`` names."""
    cell, database = services.cells.of_server(uuid)
    instance = instances.get(database, uuid)
    if instance.task_state not in action.meanwhile:
        # The server was deleted, or an administrator reset its states, before this began.
        return
    volumes, host = block_devices.of_instance(database, uuid), instance.host or ""
    notify(services, context, instance, action, "start")
    try:
        with history.event(database, context, uuid, action.event, host):
            if action.starts:
                liveness.of_host(services, database, host).refuse_fenced()
            outcome = work(services.computes(cell.uuid), instance, volumes)
    except errors.CausewayError as failure:
        vm_state = action.after_failure or instance.vm_state
        history.fail(database, uuid, failure, instance.host, action.meanwhile, vm_state=vm_state)
        return
    becomes = action.becomes or instance.vm_state
    device_records.save_guest(
        database, uuid, outcome, vm_state=becomes, task_state=None, expected_task=set(action.meanwhile)
    )
    instance.vm_state, instance.task_state, instance.power_state = becomes, None, outcome.power_state
    notify(services, context, instance, action, "end")


def notify(
    services: ConductorServices, context: RequestContext, instance: Instance, action: GuestAction, phase: str
) -> None:
    """Sends the action's notification, if it has one."""
    if action.notification is not None:
        services.notifier.instance_action(context, instance, action.notification, phase, host=instance.host or "")
