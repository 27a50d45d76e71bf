"""Orders for rescues. A host carries out each order once for its operation."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, OperationToken
from causeway.model.rescue import RescueImage
from causeway.rpc.declare import Client, call

order = call(since="1.14", monitor=True)


class RescueCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`.

    Each order raises TakenOver if another conductor owns the operation, and ClaimRefused if the operation has undone it since.
    """

    @order
    def rescue_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        image: RescueImage,
    ) -> GuestOutcome:
        """Powers the guest off, and boots it from a disk made from the image."""

    @order
    def undo_rescue(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        power_on: bool,
    ) -> None:
        """Restores the guest with its own disk, starts it if ``power_on``, and deletes the rescue disk.

        Does nothing if `rescue_guest` did not touch the guest.
        """

    @order
    def unrescue_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        """Boots the guest from its own disk. The rescue disk stays until `delete_rescue_disk`."""

    @order
    def undo_unrescue(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        image: RescueImage,
    ) -> None:
        """Boots the guest from its rescue disk again, which was made from ``image``."""

    @order
    def delete_rescue_disk(
        self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance
    ) -> None:
        """Deletes the rescue disk. Raises GuestFailed while the guest has it."""
