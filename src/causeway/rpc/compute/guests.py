"""Calls that build, start, stop, destroy and inspect a server's guest.

Builds, deletes, starts and stops are also orders (`causeway.rpc.compute.orders`), which were added later.
"""

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

    @call(since="1.0", monitor=True)
    def build_instance(
        self, context: RequestContext, host: str, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> GuestOutcome:
        """Makes a new guest. Its ports (``instance.network_info``) exist but are not bound, and its volumes are reserved."""

    @call(since="1.0", monitor=True)
    def destroy_instance(
        self, context: RequestContext, host: str, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> None:
        """Destroys a guest with all its disks, including stashed ones, and disconnects its volumes."""

    @call(since="1.0")
    def inspect_instance(self, context: RequestContext, host: str, *, instance_uuid: str) -> GuestFacts:
        """Returns what is on the host for a server."""

    @call(since="1.0", monitor=True)
    def power_on_instance(
        self, context: RequestContext, host: str, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> GuestOutcome: ...

    @call(since="1.0", monitor=True)
    def power_off_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState: ...

    @call(since="1.0", monitor=True)
    def reboot_instance(
        self,
        context: RequestContext,
        host: str,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        hard: bool,
    ) -> PowerState: ...

    @call(since="1.0")
    def get_console_output(
        self, context: RequestContext, host: str, *, instance_uuid: str, length: int | None
    ) -> str: ...

    @cast(since="1.0")
    def external_instance_events(self, context: RequestContext, host: str, *, events: list[ExternalEvent]) -> None: ...
