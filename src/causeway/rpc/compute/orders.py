"""Orders of operations other than moves. A host carries out each order once, even if the answer is lost."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, MoveToken, UploadedDisk
from causeway.rpc.compute.guest_states import GuestStateCalls
from causeway.rpc.compute.guests import GuestCalls
from causeway.rpc.declare import call


def _build_instance(
    computes: OrderCalls,
    context: RequestContext,
    host: str,
    *,
    instance: Instance,
    block_devices: list[BlockDevice],
    again: bool,
) -> GuestOutcome:
    if again:
        computes.destroy_instance(context, host, instance=instance, block_devices=block_devices)
    return computes.build_instance(context, host, instance=instance, block_devices=block_devices)


def _store_disk(
    computes: OrderCalls, context: RequestContext, host: str, *, instance: Instance, image_id: str | None
) -> None:
    computes.power_off_instance(context, host, instance=instance)
    if image_id is not None:
        computes.snapshot_instance(context, host, instance=instance, image_id=image_id)


def _upload_disk(
    computes: OrderCalls,
    context: RequestContext,
    host: str,
    *,
    token: MoveToken,
    instance: Instance,
    image_id: str,
    power_off: bool,
) -> UploadedDisk:
    if power_off:
        computes.store_disk(context, host, token=token, instance=instance, image_id=image_id)
    else:
        computes.snapshot_instance(context, host, instance=instance, image_id=image_id)
    return UploadedDisk()


class OrderCalls(GuestCalls, GuestStateCalls):
    """A part of `causeway.rpc.compute.ComputeClient`. A host of an earlier release gets the same call without a token.

    Each order raises TakenOver if another conductor owns the operation, and ClaimRefused if the operation has undone it since.
    """

    @call(since="1.4", monitor=True, formerly=_build_instance)
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
        """`build_instance`. ``again``: the host got this order before, so it first destroys what it may have made."""

    @call(since="1.4", monitor=True, formerly=GuestCalls.destroy_instance)
    def undo_build(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        """`destroy_instance`, after `build_guest`. A conductor that takes the build over may build on this host again."""

    @call(since="1.3", monitor=True, formerly=GuestStateCalls.rebuild_instance)
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

    @call(since="1.3", monitor=True, formerly=GuestCalls.destroy_instance)
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

    @call(since="1.3", monitor=True, formerly=GuestCalls.power_on_instance)
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

    @call(since="1.3", monitor=True, formerly=GuestCalls.power_on_instance)
    def restore_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        """`power_on_instance`, for a guest that `store_disk` may have powered off."""

    @call(since="1.3", monitor=True, formerly=GuestCalls.power_off_instance)
    def stop_guest(self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance) -> None:
        """`power_off_instance`."""

    @call(since="1.3", monitor=True, formerly=_store_disk)
    def store_disk(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, image_id: str | None
    ) -> None:
        """Powers the guest off and uploads its disk. ``image_id`` None: only powers off, because the disk is a volume."""

    @call(since="1.4", monitor=True, formerly=_upload_disk)
    def upload_disk(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        image_id: str,
        power_off: bool,
    ) -> UploadedDisk:
        """`snapshot_instance`. ``power_off``: powers the guest off; a host that can uploads most of the disk before that."""
