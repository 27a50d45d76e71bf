"""Pauses, unpauses, suspends and resumes servers."""

from __future__ import annotations

from collections.abc import Callable

from causeway.conductor.endpoints.power import change_guest
from causeway.context import RequestContext
from causeway.model import server_actions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.server_actions import GuestAction
from causeway.model.states import PowerState
from causeway.rpc.compute import ComputeClient
from causeway.running.services import ConductorServices


class GuestStatesEndpoint:
    """RPC: pause, unpause, suspend, resume. The API has set the task state."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def pause_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._change(context, instance_uuid, server_actions.PAUSE, ComputeClient.pause_instance)

    def unpause_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._change(context, instance_uuid, server_actions.UNPAUSE, ComputeClient.unpause_instance)

    def suspend_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._change(context, instance_uuid, server_actions.SUSPEND, ComputeClient.suspend_instance)

    def resume_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        def work(computes: ComputeClient, instance: Instance, devices: list[BlockDevice]) -> GuestOutcome:
            return computes.resume_instance(context, instance.host or "", instance=instance, block_devices=devices)

        change_guest(self._services, context, instance_uuid, server_actions.RESUME, work)

    def _change(self, context: RequestContext, uuid: str, action: GuestAction, ask: Callable[..., PowerState]) -> None:
        def work(computes: ComputeClient, instance: Instance, _devices: list[BlockDevice]) -> GuestOutcome:
            return GuestOutcome(ask(computes, context, instance.host or "", instance=instance), instance.network_info)

        change_guest(self._services, context, uuid, action, work)
