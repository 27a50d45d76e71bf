"""A host's part in a move between cells: prepare, hand over, take over, and back. Driven by `moves.steps`, one RPC each."""

from __future__ import annotations

from causeway import errors
from causeway.compute.handover import actions, disk_transfer
from causeway.compute.host import Host
from causeway.compute.host.claims import claim_for_move
from causeway.compute.host.fence import fenced
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.instance import Instance, MigrationContext
from causeway.model.outcomes import GuestOutcome, MoveToken, Snapshot, SourceOutcome
from causeway.model.states import PowerState


class SnapshotResizeEndpoint:
    """RPC: the steps of snapshot-based moves, under the field's names. Each takes effect once for a move (`fence`)."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.fence = host.fence

    @fenced
    def prep_snapshot_based_resize_at_dest(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> MigrationContext:
        host = self._host
        with host.lock(instance.uuid):
            facts = host.driver.inspect(instance.uuid)
            if facts.power_state is not None or facts.has_disks:
                raise errors.ClaimRefused(
                    f"The chosen host holds a guest or disks of server {instance.uuid} already.",
                    details=f"host {host.name}; `causeway audit` tells what they are",
                )
            actions.check_volumes(host, block_devices)
            return claim_for_move(host.claims, instance, token.migration_uuid, host.name)

    @fenced
    def prep_snapshot_based_resize_at_source(
        self,
        context: RequestContext,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        image_id: str | None,
        disk_image_ids: dict[str, str] | None = None,
    ) -> SourceOutcome:
        host, disks = self._host, disk_image_ids or {}
        with host.lock(instance.uuid):
            actions.switch_off(host, instance, block_devices, needs_disks=image_id is not None or bool(disks))
            snapshot = None
            if image_id is not None:
                snapshot = disk_transfer.send(host, context, token, instance, image_id)
            sent = {name: disk_transfer.send(host, context, token, instance, id, name) for name, id in disks.items()}
            actions.destroy_and_stash_disks(host, instance, block_devices)
        return SourceOutcome(PowerState.SHUTDOWN, snapshot, sent)

    @fenced
    def finish_snapshot_based_resize_at_dest(
        self,
        context: RequestContext,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot: Snapshot | None,
        power_on: bool,
        disks: dict[str, Snapshot] | None = None,
    ) -> GuestOutcome:
        host, local = self._host, disks or {}

        def receive() -> actions.Received:
            root_disk = None
            if snapshot is not None:
                path = disk_transfer.download(host, context, token, instance, snapshot)
                root_disk = disk_transfer.root_disk(host, context, instance, snapshot, path)
            elif not is_volume_backed(block_devices):
                raise errors.DiskTransferFailed(f"There is no snapshot of the root disk of server {instance.uuid}.")
            paths = {name: disk_transfer.download(host, context, token, instance, sent) for name, sent in local.items()}
            formats = {name: sent.disk_format for name, sent in local.items()}
            wanted = actions.wanted_disks(host, block_devices)
            return root_disk, disk_transfer.with_content(instance, wanted, paths, formats)

        instance = host.claims.use(instance, token.migration_uuid)
        outcome = actions.make_guest(host, context, instance, block_devices, receive, power_on=power_on)
        sizes = [sent.size for sent in (snapshot, *local.values()) if sent is not None]
        outcome.bytes_done = sum(sizes) if sizes else None
        return outcome

    @fenced
    def drop_move_at_dest(
        self,
        context: RequestContext,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        actions.destroy_and_release_claim(self._host, context, token, instance, block_devices)

    @fenced
    def restore_at_source(
        self,
        context: RequestContext,
        *,
        token: MoveToken,  # noqa: ARG002 - `fenced` looks at it
        instance: Instance,
        block_devices: list[BlockDevice],
        power_on: bool,
    ) -> GuestOutcome:
        return actions.restore_from_stashed_disks(self._host, context, instance, block_devices, power_on=power_on)

    @fenced
    def confirm_snapshot_based_resize_at_source(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: MoveToken,
        instance: Instance,
    ) -> None:
        actions.delete_stashed_disks(self._host, token, instance)
