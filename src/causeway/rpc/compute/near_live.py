"""Calls of a near-live migration: the source saves the guest, and the target wakes it."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import DiskOffer, GuestOutcome, OperationToken, Snapshot, SourceOutcome
from causeway.rpc.declare import Client, call
from causeway.virt.driver import GuestFacts
from causeway.virt.live_guest import LiveSource

order = call(since="1.14", monitor=True)


class NearLiveCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @order
    def check_can_save_guest(self, context: RequestContext, host: str, *, instance: Instance) -> LiveSource:
        """Returns a description of the guest for a target. Raises GuestFailed if the guest's memory can't be saved."""

    @order
    def check_can_wake_guest(self, context: RequestContext, host: str, *, source: LiveSource) -> None:
        """Raises ClaimRefused if the host can't wake such a guest."""

    @order
    def save_guest_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        memory_image_id: str | None,
        image_id: str | None,
        disk_image_ids: dict[str, str],
        since: int | None,
    ) -> SourceOutcome:
        """Uploads the guest's memory and disks into images, and removes the guest from the host, which keeps both.

        ``since``: the round that the target has. ``memory_image_id`` None: offers everything to the target instead. Raises
        WarmCopyImpossible if the host does not know what changed since that round.
        """

    @order
    def wake_guest_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot: Snapshot | None,
        disks: dict[str, Snapshot],
        offer: DiskOffer | None,
        is_suspended: bool,
    ) -> GuestOutcome:
        """Takes over the ports, connects the volumes, and makes the guest with its memory. The guest stands still.

        ``is_suspended``: the guest is off, and the host keeps its memory for its resume. ``offer``: where to fetch memory and
        disks. Raises DiskTransferBroken if fetching fails.
        """

    @order
    def let_guest_go_on(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        is_paused: bool,
        is_suspended: bool,
    ) -> GuestFacts:
        """Resumes the target's guest, unless its user had paused or suspended it."""

    @order
    def wake_guest_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        is_paused: bool,
        is_suspended: bool,
    ) -> GuestOutcome:
        """Resumes the guest at its source, or leaves it suspended as before."""
