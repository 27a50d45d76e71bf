"""Orders of moves between cells, with the field's names."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance, MigrationContext
from causeway.model.outcomes import DiskOffer, GuestOutcome, MoveToken, Snapshot, SourceOutcome
from causeway.rpc.declare import Client, IfSet, call


class SnapshotResizeCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @call(since="1.14", monitor=True)
    def prep_snapshot_based_resize_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> MigrationContext:
        """Claims the host for the server with ``instance.new_flavor`` and checks that its volumes can be connected."""

    @call(since="1.14", monitor=True)
    def prep_snapshot_based_resize_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        image_id: str | None,
        disk_image_ids: IfSet[dict[str, str]],
        since: IfSet[int | None] = None,
        is_direct: IfSet[bool] = False,
    ) -> SourceOutcome:
        """Powers the guest off, uploads its root disk, and removes the guest from the host, which keeps the disks.

        ``image_id``: the image for the root disk; None if there is none. ``disk_image_ids``: images for the ephemeral disks, by
        name. ``since``: the round that the target has; the source uploads only later changes. ``is_direct``: offers the disks to
        the target instead, on hosts that support this. Raises WarmCopyImpossible if the host does not know the later changes.
        """

    @call(since="1.14", monitor=True)
    def send_offered(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, image_ids: dict[str, str]
    ) -> dict[str, Snapshot]:
        """Has the source upload the disks that it offers, each to its image, because the target can't fetch them."""

    @call(since="1.14", monitor=True)
    def finish_snapshot_based_resize_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot: Snapshot | None,
        power_on: bool,
        disks: IfSet[dict[str, Snapshot]],
        offer: IfSet[DiskOffer | None] = None,
    ) -> GuestOutcome:
        """Takes over the ports, connects the volumes and makes the guest, from the snapshot if its root disk is local.

        ``disks``: the snapshots of its ephemeral disks, by name. ``offer``: where to fetch all disks instead. Raises
        DiskTransferBroken if fetching fails.
        """

    @call(since="1.14", monitor=True)
    def drop_move_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        """Undoes everything that a move made at its target: guest, disks, connections, claim. Also used by revert."""

    @call(since="1.14", monitor=True)
    def restore_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        power_on: bool,
    ) -> GuestOutcome:
        """Restores the guest from its stashed disks, with its ports and volumes. For a failed move and for revert."""

    @call(since="1.14", monitor=True)
    def confirm_snapshot_based_resize_at_source(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance
    ) -> None:
        """Deletes the stashed disks, and releases everything that the source still holds for the server."""
