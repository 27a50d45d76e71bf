"""A host's part in a resize or cold migration: prepare, hand over, take over, restore, clean up.

Each step of `moves.steps` calls one method of the endpoint. The disks go from host to host (`disk_server`, `disk_fetch`), or to
another cell as images. If source and target are the same host (``same_host``), the old disks stay stashed while the new guest
runs from copies.
"""

from __future__ import annotations

from causeway import errors
from causeway.compute.guests import tpm_keys
from causeway.compute.handover import actions, disk_transfer
from causeway.compute.handover.handed_over import HandedOver, discard_rounds, end_transfer
from causeway.compute.host import Host
from causeway.compute.host.claims import claim_for_move
from causeway.compute.host.fence import fenced, fenced_and_then
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.instance import Instance, MigrationContext
from causeway.model.outcomes import DiskOffer, GuestOutcome, OperationToken, Snapshot, SourceOutcome
from causeway.model.shared_disk import SharedDisk
from causeway.model.states import PowerState
from causeway.virt.driver import ROOT_DISK


class ResizeEndpoint:
    """RPC: the steps of resizes and cold migrations. Each takes effect once for a move (`fence`)."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.fence = host.fence

    @fenced
    def prep_snapshot_based_resize_at_dest(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        same_host: bool = False,
        shared: dict[str, SharedDisk] | None = None,
    ) -> MigrationContext:
        host = self.host
        with host.lock(instance.uuid):
            if not same_host:
                actions.require_nothing_of(host, instance.uuid)
                actions.check_volumes(host, context, block_devices)
                tpm_keys.check(host, context, instance)
            actions.require_reached(host, shared or {})
            return claim_for_move(host.claims, instance, token.migration_uuid, host.name)

    def shared_disks(self, context: RequestContext, *, instance: Instance) -> dict[str, SharedDisk]:  # noqa: ARG002
        return self.host.driver.shared_disks(instance.uuid)

    @fenced_and_then(discard_rounds)
    def prep_snapshot_based_resize_at_source(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        image_id: str | None,
        disk_image_ids: dict[str, str] | None = None,
        since: int | None = None,
        is_direct: bool = False,
        shares: bool = False,
    ) -> SourceOutcome:
        """Powers the guest off, sends or offers (``is_direct``) its disks, and stashes them.

        ``shares``: those in storage that other hosts reach are not sent. ``since``: the last round that the target has; only
        later changes are sent.
        """
        host, disks = self.host, disk_image_ids or {}
        outcome = SourceOutcome(PowerState.SHUTDOWN)

        def send(image_id: str, name: str) -> Snapshot:
            return disk_transfer.send(host, context, token, instance, image_id, name, since=since)

        with host.lock(instance.uuid):
            host.rounds.end(token.operation_id)
            needs_disks = is_direct or image_id is not None or bool(disks)
            actions.switch_off(host, instance, block_devices, needs_disks=needs_disks or shares)
            outcome.shared = host.driver.shared_disks(instance.uuid) if shares else {}
            if is_direct:
                outcome.offer = disk_transfer.offer(
                    host, context, token, instance, block_devices, since, shared=outcome.shared.keys()
                )
            else:
                outcome.snapshot = send(image_id, ROOT_DISK) if image_id is not None else None
                outcome.disks = {name: send(id, name) for name, id in disks.items()}
            actions.destroy_and_stash_disks(host, instance, block_devices)
        return outcome

    @fenced
    def send_offered(
        self, context: RequestContext, *, token: OperationToken, instance: Instance, image_ids: dict[str, str]
    ) -> dict[str, Snapshot]:
        """Uploads the offered disks into images, because the target can't fetch them. The offer stays."""
        with self.host.lock(instance.uuid):
            return disk_transfer.send_offered(self.host, context, token, image_ids)

    @fenced_and_then(end_transfer)
    def finish_snapshot_based_resize_at_dest(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot: Snapshot | None,
        power_on: bool,
        disks: dict[str, Snapshot] | None = None,
        offer: DiskOffer | None = None,
        same_host: bool = False,
        shared: dict[str, SharedDisk] | None = None,
    ) -> GuestOutcome:
        """Makes the guest. ``offer``: the source's offer of all disks, if it sent none. ``shared``: disks that did not travel.

        Raises DiskTransferBroken if the offer can't be fetched.
        """
        host = self.host
        handed_over = HandedOver(snapshot, disks or {}, offer)

        def receive() -> disk_transfer.Received:
            sent = handed_over.sent
            if ROOT_DISK not in {*sent, *(shared or {})} and not is_volume_backed(block_devices):
                raise errors.DiskTransferFailed(
                    f"The source did not hand over the root disk of server {instance.uuid}."
                )
            if same_host and offer is not None:
                paths = disk_transfer.take(host, token, instance, offer)
            else:
                paths = handed_over.receive(host, context, token, instance)
            return disk_transfer.received(
                host, context, token, instance, sent, paths, actions.wanted_disks(host, block_devices), shared
            )

        instance = host.claims.use(instance, token.migration_uuid)
        outcome = actions.make_guest(
            host,
            context,
            instance,
            block_devices,
            receive,
            power_on=power_on,
            same_host=same_host,
            operation_id=token.operation_id,
        )
        outcome.bytes_done = handed_over.size
        return outcome

    @fenced
    def drop_move_at_dest(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        same_host: bool = False,
    ) -> None:
        actions.destroy_and_release_claim(self.host, context, token, instance, block_devices, same_host=same_host)

    @fenced
    def restore_at_source(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002 - `fenced` looks at it
        instance: Instance,
        block_devices: list[BlockDevice],
        power_on: bool,
    ) -> GuestOutcome:
        return actions.restore_from_stashed_disks(self.host, context, instance, block_devices, power_on=power_on)

    @fenced
    def confirm_snapshot_based_resize_at_source(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,
        instance: Instance,
    ) -> None:
        actions.delete_stashed_disks(self.host, token, instance)
