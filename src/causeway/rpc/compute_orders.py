"""What a conductor orders computes to do once for an operation that is no move, whatever becomes of the answers."""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, MoveToken
from causeway.rpc.client import RpcClient
from causeway.rpc.compute_verbs import VERSION


class ComputeOrders:
    """A part of `causeway.rpc.compute.ComputeClient`. A host of an older version is asked without a token."""

    _rpc: RpcClient

    def rebuild_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot_id: str | None,
        power_on: bool,
    ) -> GuestOutcome:
        """Makes the guest anew on this host, with its ports and volumes; what was there of it is removed.

        Its root disk, if it is local, is made from the server's image, or is what is in the image ``snapshot_id``.
        Raises ClaimRefused if the operation has removed the guest since, TakenOver if another conductor owns it.
        """
        if self._rpc.can_send(versions.ORDERS_RPC):
            try:
                return self._rpc.call(
                    context,
                    "rebuild_guest",
                    result=GuestOutcome,
                    server=host,
                    monitor=True,
                    version=versions.ORDERS_RPC,
                    token=token,
                    instance=instance,
                    block_devices=block_devices,
                    snapshot_id=snapshot_id,
                    power_on=power_on,
                )
            except errors.NoSuchMethod:
                pass
        return self._rpc.call(
            context,
            "rebuild_instance",
            result=GuestOutcome,
            server=host,
            monitor=True,
            version=VERSION,
            instance=instance,
            block_devices=block_devices,
            snapshot_id=snapshot_id,
            power_on=power_on,
        )

    def remove_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        """Removes a guest with all its disks, and disconnects its volumes. Raises TakenOver as `rebuild_guest` does."""
        if self._rpc.can_send(versions.ORDERS_RPC):
            try:
                self._rpc.call(
                    context,
                    "remove_guest",
                    result=type(None),
                    server=host,
                    monitor=True,
                    version=versions.ORDERS_RPC,
                    token=token,
                    instance=instance,
                    block_devices=block_devices,
                )
            except errors.NoSuchMethod:
                pass
            else:
                return
        self._rpc.call(
            context,
            "destroy_instance",
            result=type(None),
            server=host,
            monitor=True,
            instance=instance,
            block_devices=block_devices,
        )
