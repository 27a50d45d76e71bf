"""What destroys or makes a guest for an operation that is no move: each order is carried out once for its operation.

An order that is repeated after its answer was lost finds the outcome that was recorded; one that comes too late is refused.
"""

from __future__ import annotations

from causeway.compute.build import BuildEndpoint
from causeway.compute.fence import fenced
from causeway.compute.host import Host
from causeway.compute.rebuild import RebuildEndpoint
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, MoveToken


class OrdersEndpoint:
    """RPC: rebuild_guest, remove_guest."""

    def __init__(self, host: Host) -> None:
        self.fence = host.fence
        self._build = BuildEndpoint(host)
        self._rebuild = RebuildEndpoint(host)

    @fenced
    def rebuild_guest(
        self,
        context: RequestContext,
        *,
        token: MoveToken,  # noqa: ARG002
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot_id: str | None,
        power_on: bool,
    ) -> GuestOutcome:
        return self._rebuild.rebuild_instance(
            context, instance=instance, block_devices=block_devices, snapshot_id=snapshot_id, power_on=power_on
        )

    @fenced
    def remove_guest(
        self,
        context: RequestContext,
        *,
        token: MoveToken,  # noqa: ARG002
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        self._build.destroy_instance(context, instance=instance, block_devices=block_devices)
