"""Power, state and console."""

from __future__ import annotations

from causeway import errors
from causeway.compute.guests import guest, plugging, rescue
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState
from causeway.virt.driver import GuestFacts


def start(host: Host, context: RequestContext, instance: Instance, block_devices: list[BlockDevice]) -> GuestOutcome:
    """Starts a guest. The caller holds its lock."""
    with host.vif_events.watch(instance.uuid) as watch:
        vifs = guest.refreshed_ports(host, context, instance)
        with guest.connected_volumes(host, context, block_devices) as volumes:
            power_state = host.driver.power_on(
                guest.spec_of(
                    host,
                    context,
                    instance,
                    vifs,
                    volumes,
                    block_devices=block_devices,
                    rescue=rescue.of_record(instance),
                ),
                vifs_plugged=plugging.anew(watch, vifs),
            )
    rescue.discard_stale(host, instance)
    return guest.outcome_of(host, instance, power_state, vifs, volumes)


class PowerEndpoint:
    """RPC: inspect, start, stop, reboot, console output."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def inspect_instance(self, context: RequestContext, *, instance_uuid: str) -> GuestFacts:  # noqa: ARG002
        return self._host.driver.inspect(instance_uuid)

    def power_on_instance(
        self, context: RequestContext, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> GuestOutcome:
        host = self._host
        with host.lock(instance.uuid):
            guest.refuse_late_start(host, context, instance)
            return start(host, context, instance, block_devices)

    def power_off_instance(self, context: RequestContext, *, instance: Instance) -> PowerState:  # noqa: ARG002
        with self._host.lock(instance.uuid):
            self._host.driver.power_off(instance.uuid, self._host.shutdown_timeout(instance))
        return PowerState.SHUTDOWN

    def reboot_instance(
        self, context: RequestContext, *, instance: Instance, block_devices: list[BlockDevice], hard: bool
    ) -> PowerState:
        host = self._host
        with host.lock(instance.uuid), host.vif_events.watch(instance.uuid) as watch:
            guest.refuse_late_start(host, context, instance)
            vifs = guest.refreshed_ports(host, context, instance) if hard else instance.network_info
            with guest.connected_volumes(host, context, block_devices) as volumes:
                power_state = host.driver.reboot(
                    guest.spec_of(
                        host,
                        context,
                        instance,
                        vifs,
                        volumes,
                        block_devices=block_devices,
                        rescue=rescue.of_record(instance),
                    ),
                    hard=hard,
                    timeout=host.shutdown_timeout(instance),
                    vifs_plugged=plugging.anew(watch, vifs),
                )
            rescue.discard_stale(host, instance)
            return power_state

    def get_console_output(self, context: RequestContext, *, instance_uuid: str, length: int | None) -> str:  # noqa: ARG002
        if self._host.driver.inspect(instance_uuid).power_state is None:
            raise errors.NotFound(f"The console of server {instance_uuid} could not be found: it has no guest.")
        text = self._host.driver.console_output(instance_uuid).decode(errors="replace")
        if length is None or length < 0:
            return text
        return "\n".join(text.split("\n")[-length:]) if length else ""
