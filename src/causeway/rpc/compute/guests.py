"""Calls that inspect, start, stop and reboot a server's guest. Operations order the same (`causeway.rpc.compute.orders`)."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.events import ExternalEvent
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState
from causeway.rpc.declare import Client, call, cast
from causeway.virt.driver import GuestFacts


class GuestCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @call(since="1.14")
    def inspect_instance(self, context: RequestContext, host: str, *, instance_uuid: str) -> GuestFacts:
        """Returns what is on the host for a server."""

    @call(since="1.14", monitor=True)
    def power_on_instance(
        self, context: RequestContext, host: str, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> GuestOutcome: ...

    @call(since="1.14", monitor=True)
    def power_off_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState: ...

    @call(since="1.14", monitor=True)
    def reboot_instance(
        self,
        context: RequestContext,
        host: str,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        hard: bool,
    ) -> PowerState: ...

    @call(since="1.14")
    def get_console_output(
        self, context: RequestContext, host: str, *, instance_uuid: str, length: int | None
    ) -> str: ...

    @cast(since="1.14")
    def external_instance_events(self, context: RequestContext, host: str, *, events: list[ExternalEvent]) -> None: ...
