"""What a conductor asks of computes apart from builds, devices and moves: states of guests, images of disks, rebuilds."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.missed import MissedOrder
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState
from causeway.rpc.client import RpcClient
from causeway.virt.driver import GuestFacts

# They came later than the rest.
VERSION = "1.1"
VERIFY = versions.VERIFY_RPC


class ComputeVerbs:
    """A part of `causeway.rpc.compute.ComputeClient`."""

    _rpc: RpcClient

    def can_verify(self) -> bool:
        """Whether the upgrade level allows `verify_server`."""
        return self._rpc.can_send(VERIFY)

    def verify_server(
        self,
        context: RequestContext,
        host: str,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        stashed: bool,
    ) -> GuestFacts:
        """Has a host show that the server could live on from its guest there, or from its stashed disks. Changes nothing.

        Raises CopyNotUsable if it could not.
        """
        return self._rpc.call(
            context,
            "verify_server",
            result=GuestFacts,
            server=host,
            monitor=True,
            version=VERIFY,
            instance=instance,
            block_devices=block_devices,
            stashed=stashed,
        )

    def carry_out_missed(self, context: RequestContext, host: str, *, orders: list[MissedOrder]) -> list[str]:
        """Has a host that is back do what it was not told while it was dead; returns the ids of what it did."""
        return self._rpc.call(
            context,
            "carry_out_missed",
            result=list[str],
            server=host,
            monitor=True,
            version=VERIFY,
            orders=orders,
        )

    def pause_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState:
        return self._guest_state(context, host, "pause_instance", instance)

    def unpause_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState:
        return self._guest_state(context, host, "unpause_instance", instance)

    def suspend_instance(self, context: RequestContext, host: str, *, instance: Instance) -> PowerState:
        """Writes the guest's memory to the host's disk and stops it."""
        return self._guest_state(context, host, "suspend_instance", instance)

    def _guest_state(self, context: RequestContext, host: str, method: str, instance: Instance) -> PowerState:
        return self._rpc.call(
            context, method, result=PowerState, server=host, monitor=True, version=VERSION, instance=instance
        )

    def resume_instance(
        self, context: RequestContext, host: str, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> GuestOutcome:
        """The guest goes on where it was suspended."""
        return self._rpc.call(
            context,
            "resume_instance",
            result=GuestOutcome,
            server=host,
            monitor=True,
            version=VERSION,
            instance=instance,
            block_devices=block_devices,
        )

    def snapshot_instance(self, context: RequestContext, host: str, *, instance: Instance, image_id: str) -> None:
        """Uploads the root disk, with everything in it, into an image that is there; a running guest pauses for the copy."""
        self._rpc.call(
            context,
            "snapshot_instance",
            result=type(None),
            server=host,
            monitor=True,
            version=VERSION,
            instance=instance,
            image_id=image_id,
        )

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
        """Makes the guest anew on this host, with its ports and volumes; what was there of it is removed.

        Its root disk, if it is local, is made from the server's image, or is what is in the image ``snapshot_id``.
        """
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
