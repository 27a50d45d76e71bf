"""Orders of moves inside a cell, with the field's names."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance, MigrationContext
from causeway.model.outcomes import DiskOffer, GuestOutcome, MoveToken, SourceOutcome
from causeway.rpc.declare import Client, IfSet, call


class ResizeCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @call(since="1.14", monitor=True)
    def prep_resize(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        migration_type: str,
    ) -> MigrationContext:
        """Claims the host for the server with ``instance.new_flavor`` and checks that its volumes can be connected."""

    @call(since="1.14", monitor=True)
    def resize_instance(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        since: IfSet[int | None] = None,
    ) -> SourceOutcome:
        """Powers the guest off, offers its local disks to the target, and removes the guest from the host, which keeps the disks.

        ``since``: the round that the target has; the source offers only later changes. Raises WarmCopyImpossible if the host does
        not know them.
        """

    @call(since="1.14", monitor=True)
    def finish_resize(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        offer: DiskOffer,
        source_host: str,
        power_on: bool,
    ) -> GuestOutcome:
        """Takes over the ports, connects the volumes, fetches the local disks, and makes the guest from them."""

    @call(since="1.14", monitor=True)
    def confirm_resize(self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance) -> None:
        """Deletes the stashed disks, and releases everything that the source still holds for the server."""

    @call(since="1.14", monitor=True)
    def revert_resize(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        source_host: str,
    ) -> None:
        """Undoes everything that a move made at its target: guest, disks, connections, claim. Also for a failed move."""

    @call(since="1.14", monitor=True)
    def finish_revert_resize(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        power_on: bool,
    ) -> GuestOutcome:
        """Restores the guest from its stashed disks, with its ports and volumes. Also for a failed move."""

    @call(since="1.14")
    def drop_move_claim(self, context: RequestContext, host: str, *, token: MoveToken, instance_uuid: str) -> None:
        """Releases the claim of a move at a host that the move abandons before making a guest there."""
