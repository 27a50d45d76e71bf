"""Orders of resizes and cold migrations. Their names are those that Nova has for moves between cells."""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance, MigrationContext
from causeway.model.outcomes import DiskOffer, GuestOutcome, OperationToken, Snapshot, SourceOutcome
from causeway.model.shared_disk import SharedDisk
from causeway.rpc.compute.of_shared_disks import SHARING_DISKS, WITH_SHARED_DISKS, shares_no_disks
from causeway.rpc.declare import Client, IfSet, Newer, call


def _too_old(host: str, _method: str) -> errors.HostTooOld:
    return errors.HostTooOld(
        "The host's compute service can't resize a server on its own host until it is upgraded.", details=f"host {host}"
    )


# Hosts of 0.1.0 have other calls for a move whose target is its source. They would take these for a move to another host.
_ON_ONE_HOST = Newer("1.15", lambda given: bool(given["same_host"]), _too_old)


class ResizeCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @call(since="1.14", monitor=True, newer=(_ON_ONE_HOST, WITH_SHARED_DISKS))
    def prep_snapshot_based_resize_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        same_host: IfSet[bool] = False,
        shared: IfSet[dict[str, SharedDisk] | None] = None,
    ) -> MigrationContext:
        """Claims the host for the server with ``instance.new_flavor`` and checks that its volumes can be connected.

        ``same_host``: the host is the move's source, too. ``shared``: disks that the host has to see in its storage.
        """

    @call(since="1.18", monitor=True, too_old=shares_no_disks)
    def shared_disks(self, context: RequestContext, host: str, *, instance: Instance) -> dict[str, SharedDisk]:
        """Returns the disks of the server's guest that other hosts may reach, by name."""

    @call(since="1.14", monitor=True, newer=(SHARING_DISKS,))
    def prep_snapshot_based_resize_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        image_id: str | None,
        disk_image_ids: dict[str, str],
        since: int | None,
        is_direct: bool,
        shares: IfSet[bool] = False,
    ) -> SourceOutcome:
        """Powers the guest off, sends or offers its disks, and removes the guest from the host, which keeps the disks.

        ``shares``: disks in storage that other hosts reach are put aside there instead.

        ``is_direct``: offers the disks to the target. Otherwise uploads them: the root disk into ``image_id`` (None: there is no
        local one), the ephemeral disks into ``disk_image_ids``, by name. ``since``: the round that the target has; only later
        changes travel. Raises WarmCopyImpossible if the host does not know the later changes.
        """

    @call(since="1.14", monitor=True)
    def send_offered(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        image_ids: dict[str, str],
    ) -> dict[str, Snapshot]:
        """Has the source upload the disks that it offers, each to its image, because the target can't fetch them."""

    @call(since="1.14", monitor=True, newer=(_ON_ONE_HOST, WITH_SHARED_DISKS))
    def finish_snapshot_based_resize_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot: Snapshot | None,
        power_on: bool,
        disks: dict[str, Snapshot],
        offer: DiskOffer | None,
        same_host: IfSet[bool] = False,
        shared: IfSet[dict[str, SharedDisk] | None] = None,
    ) -> GuestOutcome:
        """Takes over the ports, connects the volumes and makes the guest, from the snapshot if its root disk is local.

        ``disks``: the snapshots of its ephemeral disks, by name. ``offer``: where to fetch all disks instead. ``shared``: disks
        that the host takes over in its storage. Raises DiskTransferBroken if fetching fails.
        """

    @call(since="1.14", monitor=True, newer=(_ON_ONE_HOST,))
    def drop_move_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        same_host: IfSet[bool] = False,
    ) -> None:
        """Undoes everything that a move made at its target: guest, disks, connections, claim. Also used by revert."""

    @call(since="1.14", monitor=True)
    def restore_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        power_on: bool,
    ) -> GuestOutcome:
        """Restores the guest from its stashed disks, with its ports and volumes. For a failed move and for revert."""

    @call(since="1.14", monitor=True)
    def confirm_snapshot_based_resize_at_source(
        self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance
    ) -> None:
        """Deletes the stashed disks, and releases everything that the source still holds for the server."""

    @call(since="1.14")
    def drop_move_claim(self, context: RequestContext, host: str, *, token: OperationToken, instance_uuid: str) -> None:
        """Releases the claim of a move at a host that the move abandons before making a guest there."""
