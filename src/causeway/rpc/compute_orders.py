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

    def build_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        again: bool,
    ) -> GuestOutcome:
        """`build_instance`. ``again``: the host was asked before; what it may have made is destroyed first."""
        return self._order(
            "build_guest",
            GuestOutcome,
            self._build_instance,
            context,
            host,
            token,
            since=versions.ALL_ORDERS_RPC,
            instance=instance,
            block_devices=block_devices,
            again=again,
        )

    def _build_instance(
        self,
        context: RequestContext,
        host: str,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        again: bool,
    ) -> GuestOutcome:
        if again:
            self.destroy_instance(context, host, instance=instance, block_devices=block_devices)
        return self.build_instance(context, host, instance=instance, block_devices=block_devices)

    def undo_build(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        """`destroy_instance`, for what `build_guest` has made, or was to. Whoever takes the build over may build there again."""
        self._order(
            "undo_build",
            NOTHING,
            self.destroy_instance,
            context,
            host,
            token,
            since=versions.ALL_ORDERS_RPC,
            instance=instance,
            block_devices=block_devices,
        )

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
        """The guest is powered off, and its disk is uploaded, unless ``image_id`` is None: then the disk is on a volume.

        Most of the disk goes up while the guest still runs, if the host can do so.
        """

        def store(context: RequestContext, host: str, **given: Any) -> UploadedDisk:
            self._order("store_disk", NOTHING, self._store_disk, context, host, token, **given, image_id=image_id)
            return UploadedDisk()

        if image_id is None:
            return store(context, host, instance=instance)
        return self._upload_disk(context, host, store, token, instance=instance, image_id=image_id, power_off=True)

    def _store_disk(self, context: RequestContext, host: str, *, instance: Instance, image_id: str | None) -> None:
        self.power_off_instance(context, host, instance=instance)
        if image_id is not None:
            self.snapshot_instance(context, host, instance=instance, image_id=image_id)

    def upload_disk(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, image_id: str
    ) -> UploadedDisk:
        """`snapshot_instance`."""

        def upload(context: RequestContext, host: str, **given: Any) -> UploadedDisk:
            self.snapshot_instance(context, host, **given, image_id=image_id)
            return UploadedDisk()

        return self._upload_disk(context, host, upload, token, instance=instance, image_id=image_id, power_off=False)

    def _upload_disk(
        self,
        context: RequestContext,
        host: str,
        of_older_host: Callable[..., UploadedDisk],
        token: MoveToken,
        *,
        instance: Instance,
        image_id: str,
        power_off: bool,
    ) -> UploadedDisk:
        return self._order(
            "upload_disk",
            UploadedDisk,
            lambda context, host, instance, **_given: of_older_host(context, host, instance=instance),
            context,
            host,
            token,
            since=versions.ALL_ORDERS_RPC,
            instance=instance,
            image_id=image_id,
            power_off=power_off,
        )

    def _order(
        self,
        method: str,
        result: type[T],
        without_token: Callable[..., object],
        context: RequestContext,
        host: str,
        token: MoveToken,
        since: str = versions.ORDERS_RPC,
        **given: Any,
    ) -> T:
        """``without_token``: the same of a host that does not know the order, which is older than the version ``since``."""
        if self._rpc.can_send(since):
            try:
                return self._rpc.call(
                    context,
                    method,
                    result=result,
                    server=host,
                    monitor=True,
                    version=since,
                    token=token,
                    **given,
                )
            except errors.NoSuchMethod:
                pass
        return cast(T, without_token(context, host, **given))
