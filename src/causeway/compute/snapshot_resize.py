"""A host's part in a move: prepare, hand over, take over, and back. Driven by `moves.steps`, one RPC each."""

from __future__ import annotations

import dataclasses

from causeway import errors
from causeway.compute import disk_transfer, guest
from causeway.compute.claims import claim_for_move
from causeway.compute.fence import fenced
from causeway.compute.host import Host
from causeway.compute.local_disks import local_disks
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.instance import Instance, MigrationContext
from causeway.model.network import Vif
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
        driver = self._host.driver
        with self._host.lock(instance.uuid):
            facts = driver.inspect(instance.uuid)
            if facts.power_state is not None or facts.has_disks:
                raise errors.ClaimRefused(
                    f"The chosen host holds a guest or disks of server {instance.uuid} already.",
                    details=f"host {self._host.name}; `causeway audit` tells what they are",
                )
            for device in guest.volumes_of(block_devices):
                if device.connection_info is not None:
                    driver.check_volume_connectable(device.connection_info)
            return claim_for_move(self._host.claims, instance, token.migration_uuid, self._host.name)

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
        host, driver = self._host, self._host.driver
        with host.lock(instance.uuid):
            facts = driver.inspect(instance.uuid)
            if facts.power_state is PowerState.RUNNING:
                driver.power_off(instance.uuid, host.shutdown_timeout(instance))
            if facts.power_state is not None and facts.has_disks and facts.has_stashed_disks:
                # Bug 1960230: the guest is here with its disks; what an earlier move stashed and forgot is in the way.
                driver.delete_stashed_disks(instance.uuid)
            snapshot = None
            disks = disk_image_ids or {}
            if (image_id is not None or disks) and facts.has_stashed_disks and not facts.has_disks:
                # Handed over before: the disks come back for the time of the export.
                driver.restore_stashed_disks(instance.uuid)
            if image_id is not None:
                snapshot = disk_transfer.send(host, context, token, instance, image_id)
            sent = {name: disk_transfer.send(host, context, token, instance, id, name) for name, id in disks.items()}
            driver.destroy(instance.uuid, instance.network_info, guest.volumes_of(block_devices), destroy_disks=False)
            driver.stash_disks(instance.uuid)
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
        host = self._host
        instance = host.claims.use(instance, token.migration_uuid)
        with host.lock(instance.uuid), host.vif_events.watch(instance.uuid) as watch:
            self._remove_guest(instance, block_devices, destroy_disks=True)
            vifs = guest.take_over_ports(host, context, instance)
            root_disk = None
            if snapshot is not None:
                root_disk = disk_transfer.receive(host, context, token, instance, snapshot)
            elif not is_volume_backed(block_devices):
                raise errors.DiskTransferFailed(f"There is no snapshot of the root disk of server {instance.uuid}.")
            local = disk_transfer.receive_local(
                host, context, token, instance, local_disks(host.conf, block_devices), disks or {}
            )
            try:
                with guest.connected_volumes(host, context, block_devices) as volumes:
                    spec = guest.spec_of(
                        host,
                        instance,
                        vifs,
                        volumes,
                        block_devices=block_devices,
                        root_disk=root_disk,
                        power_on=power_on,
                    )
                    spec.local_disks = local
                    power_state = host.driver.spawn(
                        spec, vifs_plugged=guest.plugging(host, watch, vifs if power_on else [])
                    )
            finally:
                if snapshot is not None or disks:
                    disk_transfer.discard(host, instance.uuid)
        sizes = [sent.size for sent in (snapshot, *(disks or {}).values()) if sent is not None]
        size = sum(sizes) if sizes else None
        return GuestOutcome(power_state, [_plugged(vif, power_on) for vif in vifs], volumes, bytes_done=size)

    @fenced
    def drop_move_at_dest(
        self,
        context: RequestContext,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        with self._host.lock(instance.uuid):
            # Whoever lost the answer of the connecting does not know what is connected here.
            devices = guest.with_connections(self._host, context, block_devices)
            self._remove_guest(instance, devices, destroy_disks=True)
            self._host.claims.release(instance.uuid, token.migration_uuid)

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
        host = self._host
        with host.lock(instance.uuid), host.vif_events.watch(instance.uuid) as watch:
            facts = host.driver.inspect(instance.uuid)
            vifs = guest.take_over_ports(host, context, instance)
            if facts.power_state is PowerState.RUNNING:
                # It never stopped, or it was brought back before and its attachments are still to be completed.
                with guest.connected_volumes(host, context, block_devices) as volumes:
                    return GuestOutcome(PowerState.RUNNING, vifs, volumes)
            host.driver.restore_stashed_disks(instance.uuid)
            with guest.connected_volumes(host, context, block_devices) as volumes:
                spec = guest.spec_of(host, instance, vifs, volumes, block_devices=block_devices, power_on=power_on)
                power_state = host.driver.spawn(
                    spec, vifs_plugged=guest.plugging(host, watch, vifs if power_on else [])
                )
        return GuestOutcome(power_state, [_plugged(vif, power_on) for vif in vifs], volumes)

    @fenced
    def confirm_snapshot_based_resize_at_source(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: MoveToken,
        instance: Instance,
    ) -> None:
        with self._host.lock(instance.uuid):
            self._host.driver.delete_stashed_disks(instance.uuid)
            self._host.claims.release_others(instance.uuid, token.migration_uuid)

    def _remove_guest(self, instance: Instance, block_devices: list[BlockDevice], *, destroy_disks: bool) -> None:
        driver = self._host.driver
        disk_transfer.discard(self._host, instance.uuid)
        facts = driver.inspect(instance.uuid)
        volumes = [device for device in guest.volumes_of(block_devices) if device.connection_info]
        # Volumes may be connected for a guest that was not made in the end.
        if facts.power_state is not None or facts.has_disks or volumes:
            driver.destroy(instance.uuid, instance.network_info, volumes, destroy_disks=destroy_disks)


def _plugged(vif: Vif, power_on: bool) -> Vif:
    # The spawn waited for every port that was not active when it began.
    return dataclasses.replace(vif, active=vif.active or power_on)
