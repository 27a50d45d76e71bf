"""Calls about states of guests and, for hosts of an older version, about their disks."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState
from causeway.rpc.declare import Client, call


class GuestStateCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @call(since="1.1", monitor=True)
    def pause_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState: ...

    @call(since="1.1", monitor=True)
    def unpause_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState: ...

    @call(since="1.1", monitor=True)
    def suspend_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState:
        """Writes the guest's memory to the host's disk and stops it."""

    @call(since="1.1", monitor=True)
    def resume_instance(
        self, context: RequestContext, host: str, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> GuestOutcome:
        """Resumes the guest where it was suspended."""

    @call(since="1.1", monitor=True)
    def snapshot_instance(self, context: RequestContext, host: str, *, instance: Instance, image_id: str) -> None:
        """Uploads the whole root disk into an existing image. A running guest pauses for the copy."""

    @call(since="1.1", monitor=True)
    def rebuild_instance(
        self,
        context: RequestContext,
        host: str,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot_id: str | None,
        power_on: bool,
    ) -> GuestOutcome:
        """Makes the guest anew on this host, with its ports and volumes. The old guest is destroyed with its disks.

        A local root disk is made from the server's image, or has the content of the image ``snapshot_id``.
        """
