"""Calls that check a copy of a server before another copy is destroyed, and that give orders to a host that was dead."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.missed import MissedOrder
from causeway.rpc.declare import Client, call
from causeway.virt.driver import GuestFacts


class CopyCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @call(since="1.14", monitor=True)
    def verify_server(
        self,
        context: RequestContext,
        host: str,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        stashed: bool,
    ) -> GuestFacts:
        """Checks that the server could run from its guest on this host, or (``stashed``) from its stashed disks. Changes nothing.

        Raises CopyNotUsable if it could not.
        """

    @call(since="1.14", monitor=True)
    def carry_out_missed(self, context: RequestContext, host: str, *, orders: list[MissedOrder]) -> list[str]:
        """Has a host carry out the orders that it missed while it was dead. Returns the ids of those that succeeded."""
