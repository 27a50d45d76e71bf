"""A host's part in a move inside its cell. Each step of `moves.steps.same_cell` calls one method of the endpoint.

The disks go from host to host (`disk_server`, `disk_fetch`). If source and target are the same host, the old disks stay stashed
while the new guest runs from copies.
"""

from __future__ import annotations

from causeway import errors
from causeway.compute.handover import actions, disk_transfer
from causeway.compute.handover.handed_over import discard_copies, discard_rounds, end_transfer
from causeway.compute.host import Host
from causeway.compute.host.claims import claim_for_move
from causeway.compute.host.fence import fenced, fenced_and_then
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.instance import Instance, MigrationContext
from causeway.model.outcomes import DiskOffer, GuestOutcome, MoveToken, SourceOutcome
from causeway.model.states import PowerState
from causeway.virt.driver import ROOT_DISK


def _end_transfer(
    endpoint: ResizeEndpoint,
    *,
    token: MoveToken,
    instance: Instance,
    offer: DiskOffer,
    source_host: str,
    **_others: object,
) -> None:
    """The same as `end_transfer`, but sends no request to the source if the source is this host."""
    if source_host != endpoint.host.name:
        end_transfer(endpoint, token=token, instance=instance, offer=offer)
        return
    discard_copies(endpoint, token=token, instance=instance)
    endpoint.host.offers.end(token.move_id)


class ResizeEndpoint:
    """RPC: the steps of moves inside a cell, under the field's names. Each takes effect once for a move (`fence`)."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.fence = host.fence

    @fenced
    def prep_resize(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        migration_type: str,
    ) -> MigrationContext:
        host = self.host
        same_host = instance.host == host.name
        if same_host and migration_type != "resize" and not host.driver.supports_migrate_to_same_host:
            raise errors.ClaimRefused(
                f"Server {instance.uuid} can't be migrated to the host that it is on.", details=f"host {host.name}"
            )
        with host.lock(instance.uuid):
            if not same_host:
                actions.require_nothing_of(host, instance.uuid)
                actions.check_volumes(host, block_devices)
            return claim_for_move(host.claims, instance, token.migration_uuid, host.name)

    @fenced_and_then(discard_rounds)
    def resize_instance(
        self,
        context: RequestContext,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        since: int | None = None,
    ) -> SourceOutcome:
        host = self.host
        with host.lock(instance.uuid):
            host.rounds.end(token.move_id)
            actions.switch_off(host, instance, block_devices, needs_disks=True)
            offer = disk_transfer.offer(host, context, token, instance, block_devices, since)
            actions.destroy_and_stash_disks(host, instance, block_devices)
        return SourceOutcome(PowerState.SHUTDOWN, offer=offer)

    @fenced_and_then(_end_transfer)
    def finish_resize(
        self,
        context: RequestContext,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        offer: DiskOffer,
        source_host: str,
        power_on: bool,
    ) -> GuestOutcome:
        host = self.host
        same_host = source_host == host.name
        offered = {disk.name: disk for disk in offer.disks}

        def receive() -> disk_transfer.Received:
            if ROOT_DISK not in offered and not is_volume_backed(block_devices):
                raise errors.DiskTransferFailed(f"The source does not offer the root disk of server {instance.uuid}.")
            if same_host:
                paths = disk_transfer.take(host, token, instance, offer)
            else:
                paths = disk_transfer.fetch(host, context, token, instance, offer)
            return disk_transfer.received(
                host, context, token, instance, offered, paths, actions.wanted_disks(host, block_devices)
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
            move_id=token.move_id,
        )
        outcome.bytes_done = offer.shown if offered else None
        return outcome

    @fenced
    def confirm_resize(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: MoveToken,
        instance: Instance,
    ) -> None:
        actions.delete_stashed_disks(self.host, token, instance)

    @fenced
    def revert_resize(
        self,
        context: RequestContext,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        source_host: str,
    ) -> None:
        actions.destroy_and_release_claim(
            self.host, context, token, instance, block_devices, same_host=source_host == self.host.name
        )

    @fenced
    def finish_revert_resize(
        self,
        context: RequestContext,
        *,
        token: MoveToken,  # noqa: ARG002 - `fenced` looks at it
        instance: Instance,
        block_devices: list[BlockDevice],
        power_on: bool,
    ) -> GuestOutcome:
        return actions.restore_from_stashed_disks(self.host, context, instance, block_devices, power_on=power_on)
