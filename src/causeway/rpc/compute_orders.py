"""What a conductor orders computes to do once for an operation that is no move, whatever becomes of the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from causeway import errors
from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, MoveToken, UploadedDisk
from causeway.rpc.compute_guests import NOTHING, ComputeGuests
from causeway.rpc.compute_verbs import ComputeVerbs

T = TypeVar("T")


class ComputeOrders(ComputeGuests, ComputeVerbs):
    """A part of `causeway.rpc.compute.ComputeClient`. A host of an older version is asked for the same without a token.

    Each order raises TakenOver if another conductor owns the operation, and ClaimRefused if the operation has undone it since.
    """

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
        """`rebuild_instance`."""
        return self._order(
            "rebuild_guest",
            GuestOutcome,
            self.rebuild_instance,
            context,
            host,
            token,
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
        """`destroy_instance`."""
        self._order(
            "remove_guest",
            NOTHING,
            self.destroy_instance,
            context,
            host,
            token,
            instance=instance,
            block_devices=block_devices,
        )

    def start_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        """`power_on_instance`."""
        return self._order(
            "start_guest",
            GuestOutcome,
            self.power_on_instance,
            context,
            host,
            token,
            instance=instance,
            block_devices=block_devices,
        )

    def restore_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        """`power_on_instance`, for a guest that `store_disk` has powered off, or was to."""
        return self._order(
            "restore_guest",
            GuestOutcome,
            self.power_on_instance,
            context,
            host,
            token,
            instance=instance,
            block_devices=block_devices,
        )

    def stop_guest(self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance) -> None:
        """`power_off_instance`."""
        self._order("stop_guest", NOTHING, self.power_off_instance, context, host, token, instance=instance)

    def store_disk(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, image_id: str | None
    ) -> UploadedDisk:
        """`power_off_instance`, then `upload_disk`, unless ``image_id`` is None: then the disk is on a volume."""
        return self._order(
            "store_disk", UploadedDisk, self._store_disk, context, host, token, instance=instance, image_id=image_id
        )

    def _store_disk(
        self, context: RequestContext, host: str, *, instance: Instance, image_id: str | None
    ) -> UploadedDisk:
        self.power_off_instance(context, host, instance=instance)
        if image_id is None:
            return UploadedDisk()
        return self._upload_disk(context, host, instance=instance, image_id=image_id)

    def upload_disk(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, image_id: str
    ) -> UploadedDisk:
        """`snapshot_instance`."""
        return self._order(
            "upload_disk", UploadedDisk, self._upload_disk, context, host, token, instance=instance, image_id=image_id
        )

    def _upload_disk(self, context: RequestContext, host: str, *, instance: Instance, image_id: str) -> UploadedDisk:
        self.snapshot_instance(context, host, instance=instance, image_id=image_id)
        return UploadedDisk()

    def _order(
        self,
        method: str,
        result: type[T],
        without_token: Callable[..., object],
        context: RequestContext,
        host: str,
        token: MoveToken,
        **given: Any,
    ) -> T:
        """``without_token``: the same of a host that knows nothing of orders."""
        if self._rpc.can_send(versions.ORDERS_RPC):
            try:
                return self._rpc.call(
                    context,
                    method,
                    result=result,
                    server=host,
                    monitor=True,
                    version=versions.ORDERS_RPC,
                    token=token,
                    **given,
                )
            except errors.NoSuchMethod:
                pass
        return cast(T, without_token(context, host, **given))
