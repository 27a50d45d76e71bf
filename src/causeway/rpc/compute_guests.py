"""What a conductor asks of computes in the life of a server: its guest is built, started, stopped, destroyed, looked at."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.events import ExternalEvent
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState
from causeway.rpc.client import RpcClient
from causeway.virt.driver import GuestFacts

NOTHING = type(None)


class ComputeGuests:
    """A part of `causeway.rpc.compute.ComputeClient`."""

    _rpc: RpcClient

    def build_instance(
        self, context: RequestContext, host: str, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> GuestOutcome:
        """Makes a new guest; its ports (``instance.network_info``) are there and not bound, its volumes reserved."""
        return self._rpc.call(
            context,
            "build_instance",
            result=GuestOutcome,
            server=host,
            monitor=True,
            instance=instance,
            block_devices=block_devices,
        )

    def destroy_instance(
        self, context: RequestContext, host: str, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> None:
        """Removes a guest with all its disks, stashed ones too, and disconnects its volumes."""
        self._rpc.call(
            context,
            "destroy_instance",
            result=NOTHING,
            server=host,
            monitor=True,
            instance=instance,
            block_devices=block_devices,
        )

    def inspect_instance(self, context: RequestContext, host: str, *, instance_uuid: str) -> GuestFacts:
        """What is really on the host for a server."""
        return self._rpc.call(context, "inspect_instance", result=GuestFacts, server=host, instance_uuid=instance_uuid)

    def power_on_instance(
        self, context: RequestContext, host: str, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> GuestOutcome:
        return self._rpc.call(
            context,
            "power_on_instance",
            result=GuestOutcome,
            server=host,
            monitor=True,
            instance=instance,
            block_devices=block_devices,
        )

    def power_off_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState:
        return self._rpc.call(
            context, "power_off_instance", result=PowerState, server=host, monitor=True, instance=instance
        )

    def reboot_instance(
        self,
        context: RequestContext,
        host: str,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        hard: bool,
    ) -> PowerState:
        return self._rpc.call(
            context,
            "reboot_instance",
            result=PowerState,
            server=host,
            monitor=True,
            instance=instance,
            block_devices=block_devices,
            hard=hard,
        )

    def get_console_output(self, context: RequestContext, host: str, *, instance_uuid: str, length: int | None) -> str:
        return self._rpc.call(
            context, "get_console_output", result=str, server=host, instance_uuid=instance_uuid, length=length
        )

    def external_instance_events(self, context: RequestContext, host: str, *, events: list[ExternalEvent]) -> None:
        self._rpc.cast(context, "external_instance_events", server=host, events=events)
