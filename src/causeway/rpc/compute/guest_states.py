"""Calls that pause, suspend and resume guests."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState
from causeway.rpc.declare import Client, call


class GuestStateCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @call(since="1.14", monitor=True)
    def pause_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState: ...

    @call(since="1.14", monitor=True)
    def unpause_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState: ...

    @call(since="1.14", monitor=True)
    def suspend_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState:
        """Writes the guest's memory to the host's disk and stops it."""

    @call(since="1.14", monitor=True)
    def resume_instance(
        self, context: RequestContext, host: str, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> GuestOutcome:
        """Resumes the guest where it was suspended."""
