"""Pauses, suspends and resumes guests."""

from __future__ import annotations

from causeway.compute.guests import guest
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState


class GuestStatesEndpoint:
    """RPC: pause, unpause, suspend, resume."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def pause_instance(self, context: RequestContext, *, instance: Instance) -> PowerState:  # noqa: ARG002
        with self._host.lock(instance.uuid):
            self._host.driver.pause(instance.uuid)
        return PowerState.PAUSED

    def unpause_instance(self, context: RequestContext, *, instance: Instance) -> PowerState:
        with self._host.lock(instance.uuid):
            guest.refuse_late_start(self._host, context, instance)
            self._host.driver.unpause(instance.uuid)
        return PowerState.RUNNING

    def suspend_instance(self, context: RequestContext, *, instance: Instance) -> PowerState:  # noqa: ARG002
        with self._host.lock(instance.uuid):
            self._host.driver.suspend(instance.uuid)
        # Hypervisors show a suspended guest like this: it does not run, and its memory is in a file.
        return PowerState.SHUTDOWN

    def resume_instance(
        self, context: RequestContext, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> GuestOutcome:
        host = self._host
        with host.lock(instance.uuid):
            guest.refuse_late_start(host, context, instance)
            vifs = guest.refreshed_ports(host, context, instance)
            with guest.connected_volumes(host, context, block_devices) as volumes:
                power_state = host.driver.resume(
                    guest.spec_of(host, context, instance, vifs, volumes, block_devices=block_devices)
                )
            return GuestOutcome(power_state, vifs, volumes, guest_name=guest.name_here(host, instance))
