"""What a conductor asks of computes in a near-live migration: the guest is saved, woken at the other host, and goes on there."""

from __future__ import annotations

from typing import Any, TypeVar

from causeway import errors
from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import DiskOffer, GuestOutcome, MoveToken, Snapshot, SourceOutcome
from causeway.model.states import VmState
from causeway.rpc.client import RpcClient
from causeway.rpc.compute_guests import NOTHING
from causeway.virt.driver import GuestFacts
from causeway.virt.live import LiveSource

T = TypeVar("T")


class ComputeNearLive:
    """A part of `causeway.rpc.compute.ComputeClient`. Raises ClaimRefused for hosts of an older version."""

    _rpc: RpcClient

    def check_can_save_guest(self, context: RequestContext, host: str, *, instance: Instance) -> LiveSource:
        """What a target must know of the guest. Raises GuestFailed if it has no memory that can be saved."""
        is_suspended = instance.vm_state is VmState.SUSPENDED
        return self._order_near_live("check_can_save_guest", LiveSource, context, host, is_suspended, instance=instance)

    def check_can_wake_guest(
        self, context: RequestContext, host: str, *, source: LiveSource, is_suspended: bool
    ) -> None:
        """Raises ClaimRefused if the host can't wake such a guest."""
        self._order_near_live("check_can_wake_guest", NOTHING, context, host, is_suspended, source=source)

    def save_guest_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        memory_image_id: str | None,
        image_id: str | None,
        disk_image_ids: dict[str, str],
        since: int | None,
    ) -> SourceOutcome:
        """The guest's memory and disks go into images, and it leaves the host but for both.

        ``since``: the target has that round. Raises WarmCopyImpossible if the host does not know what changed since.
        ``memory_image_id`` None: all is offered to the target; of hosts that have told that they can.
        """
        return self._order_near_live(
            "save_guest_at_source",
            SourceOutcome,
            context,
            host,
            instance.vm_state is VmState.SUSPENDED,
            token=token,
            instance=instance,
            block_devices=block_devices,
            memory_image_id=memory_image_id,
            image_id=image_id,
            disk_image_ids=disk_image_ids,
            since=since,
        )

    def wake_guest_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot: Snapshot | None,
        disks: dict[str, Snapshot],
        offer: DiskOffer | None,
        is_suspended: bool,
    ) -> GuestOutcome:
        """Takes over the ports, connects the volumes, and makes the guest with its memory. It stands still.

        ``is_suspended``: it is off, and its memory is kept for its resume.
        ``offer``: where it fetches memory and disks. Raises DiskTransferBroken if it can't.
        """
        # Only hosts that know of it are offered anything.
        more: dict[str, Any] = {"offer": offer} if offer is not None else {}
        return self._order_near_live(
            "wake_guest_at_dest",
            GuestOutcome,
            context,
            host,
            is_suspended,
            token=token,
            instance=instance,
            block_devices=block_devices,
            snapshot=snapshot,
            disks=disks,
            **more,
            **_said(is_suspended),
        )

    def let_guest_go_on(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        is_paused: bool,
        is_suspended: bool,
    ) -> GuestFacts:
        """The target's guest goes on, unless its user had paused or suspended it."""
        return self._order_near_live(
            "let_guest_go_on",
            GuestFacts,
            context,
            host,
            is_suspended,
            token=token,
            instance=instance,
            block_devices=block_devices,
            is_paused=is_paused,
            **_said(is_suspended),
        )

    def wake_guest_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        is_paused: bool,
        is_suspended: bool,
    ) -> GuestOutcome:
        """The guest goes on where it was saved, or is suspended there as before."""
        return self._order_near_live(
            "wake_guest_at_source",
            GuestOutcome,
            context,
            host,
            is_suspended,
            token=token,
            instance=instance,
            block_devices=block_devices,
            is_paused=is_paused,
            **_said(is_suspended),
        )

    def _order_near_live(
        self, method: str, result: type[T], context: RequestContext, host: str, is_suspended: bool, /, **given: Any
    ) -> T:
        what, version = "keep the memory of guests", versions.SAVED_MEMORY_RPC
        if is_suspended:
            what, version = "take the memory of suspended guests along", versions.SUSPENDED_RPC
        too_old = errors.ClaimRefused(f"A host is of a version that can't {what}.", details=f"host {host}")
        return self._rpc.order_if_known(
            context, method, version=version, too_old=too_old, result=result, server=host, **given
        )


def _said(is_suspended: bool) -> dict[str, bool]:
    """Only hosts that know of it are told."""
    return {"is_suspended": True} if is_suspended else {}
