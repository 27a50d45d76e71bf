"""What a conductor orders computes to do once for an operation that is no move, whatever becomes of the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from causeway import errors
from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, MoveToken
from causeway.model.states import PowerState
from causeway.rpc.client import RpcClient
from causeway.rpc.compute_verbs import VERSION

T = TypeVar("T")


class ComputeOrders:
    """A part of `causeway.rpc.compute.ComputeClient`. A host of an older version is asked without a token.

    Each order raises TakenOver if another conductor owns the operation, and ClaimRefused if the operation has undone it since.
    """

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
        """
        given = {
            "instance": instance,
            "block_devices": block_devices,
            "snapshot_id": snapshot_id,
            "power_on": power_on,
        }
        return self._order(
            context, host, "rebuild_guest", GuestOutcome, token, given, lambda: self._ask_rebuild(context, host, given)
        )

    def _ask_rebuild(self, context: RequestContext, host: str, given: dict[str, Any]) -> GuestOutcome:
        return self._rpc.call(
            context, "rebuild_instance", result=GuestOutcome, server=host, monitor=True, version=VERSION, **given
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
        """Removes a guest with all its disks, and disconnects its volumes."""
        given: dict[str, Any] = {"instance": instance, "block_devices": block_devices}
        self._order(
            context,
            host,
            "remove_guest",
            type(None),
            token,
            given,
            lambda: self._rpc.call(context, "destroy_instance", result=type(None), server=host, monitor=True, **given),
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
        """Starts the guest from its disks."""
        return self._start(context, host, "start_guest", token, instance, block_devices)

    def restore_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        """Starts the guest again that `store_disk` has powered off, or was to."""
        return self._start(context, host, "restore_guest", token, instance, block_devices)

    def _start(
        self,
        context: RequestContext,
        host: str,
        method: str,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        given: dict[str, Any] = {"instance": instance, "block_devices": block_devices}
        return self._order(
            context,
            host,
            method,
            GuestOutcome,
            token,
            given,
            lambda: self._rpc.call(
                context, "power_on_instance", result=GuestOutcome, server=host, monitor=True, **given
            ),
        )

    def stop_guest(self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance) -> None:
        """Powers the guest off."""
        self._order(
            context,
            host,
            "stop_guest",
            type(None),
            token,
            {"instance": instance},
            lambda: self._ask_stop(context, host, instance),
        )

    def store_disk(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, image_id: str | None
    ) -> None:
        """Powers the guest off, and uploads its root disk into an image that is there; None: the disk is on a volume."""

        def ask() -> None:
            self._ask_stop(context, host, instance)
            if image_id is not None:
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

        given = {"instance": instance, "image_id": image_id}
        self._order(context, host, "store_disk", type(None), token, given, ask)

    def _ask_stop(self, context: RequestContext, host: str, instance: Instance) -> None:
        self._rpc.call(context, "power_off_instance", result=PowerState, server=host, monitor=True, instance=instance)

    def _order(
        self,
        context: RequestContext,
        host: str,
        method: str,
        result: type[T],
        token: MoveToken,
        given: dict[str, Any],
        ask: Callable[[], T],
    ) -> T:
        """``ask``: the same of a host that knows nothing of orders."""
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
        return ask()
