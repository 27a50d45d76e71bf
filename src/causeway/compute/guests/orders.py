"""Orders of operations other than moves. Each order is carried out once for its operation.

An order that is repeated after its answer was lost gets the recorded outcome. An order that comes too late is refused.
"""

from __future__ import annotations

from causeway.compute.guests import build, devices, disk_images, made_images, power, rebuild
from causeway.compute.guests.power import PowerEndpoint
from causeway.compute.host import Host
from causeway.compute.host.fence import fenced
from causeway.compute.host.transfer_progress import TransferProgress
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.outcomes import GuestOutcome, OperationToken, UploadedDisk
from causeway.model.pci import InstancePCIRequest, PciDevice


class OrdersEndpoint:
    """RPC: build_guest and undo_build; rebuild_guest, keep_disks, remove_guest, start_guest, stop_guest, store_disk,
    restore_guest; upload_disk; connect_volume, disconnect_volume, claim_port_device, plug_port, unplug_port.
    """

    def __init__(self, host: Host) -> None:
        self.fence = host.fence
        self._host = host
        self._power = PowerEndpoint(host)

    @fenced
    def build_guest(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        block_devices: list[BlockDevice],
        again: bool,
    ) -> GuestOutcome:
        if again:
            build.destroy(self._host, instance, block_devices)
        return build.build(self._host, context, instance, block_devices)

    @fenced
    def undo_build(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        build.destroy(self._host, instance, block_devices)

    @fenced
    def rebuild_guest(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot_id: str | None,
        power_on: bool,
        dead_host: str | None = None,
    ) -> GuestOutcome:
        progress = self._progress(context, token)
        outcome = rebuild.rebuild(
            self._host,
            context,
            instance,
            block_devices,
            snapshot_id,
            power_on=power_on,
            progress=progress,
            dead_host=dead_host,
        )
        outcome.bytes_done = progress.bytes_done
        return outcome

    @fenced
    def keep_disks(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
    ) -> None:
        with self._host.lock(instance.uuid):
            self._host.driver.settle_disks(instance.uuid)

    @fenced
    def remove_guest(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        build.destroy(self._host, instance, block_devices)

    @fenced
    def start_guest(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        with self._host.lock(instance.uuid):
            return power.start(self._host, context, instance, block_devices)

    @fenced
    def restore_guest(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        with self._host.lock(instance.uuid):
            if self._host.driver.supports_warm_copy:
                # Deletes the file of an upload whose process died.
                self._host.driver.end_rounds(instance.uuid)
            return power.start(self._host, context, instance, block_devices)

    @fenced
    def stop_guest(self, context: RequestContext, *, token: OperationToken, instance: Instance) -> None:  # noqa: ARG002
        self._power.power_off_instance(context, instance=instance)

    @fenced
    def store_disk(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        image_id: str | None,  # noqa: ARG002
    ) -> None:
        self._power.power_off_instance(context, instance=instance)

    @fenced
    def upload_disk(
        self, context: RequestContext, *, token: OperationToken, instance: Instance, image_id: str, power_off: bool
    ) -> UploadedDisk:
        """Uploads the root disk.

        ``power_off``: powers the guest off for it, so that the image has the final state of the disk.
        """
        copy = disk_images.store if power_off else disk_images.upload
        return UploadedDisk(copy(self._host, context, instance, image_id, self._progress(context, token)))

    @fenced
    def store_image(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        image_id: str,
        power_off: bool,
    ) -> UploadedDisk:
        return UploadedDisk(made_images.make(self._host, context, instance, image_id, power_off=power_off))

    @fenced
    def connect_volume(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        block_device: BlockDevice,
    ) -> BlockDevice:
        return devices.attach_volume(self._host, context, instance, block_device)

    @fenced
    def disconnect_volume(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        block_device: BlockDevice,
    ) -> None:
        devices.detach_volume(self._host, context, instance, block_device)

    @fenced
    def claim_port_device(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        request: InstancePCIRequest,
    ) -> PciDevice:
        with self._host.lock(instance.uuid):
            return self._host.claims.add_device(instance, request)

    @fenced
    def plug_port(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        port_id: str,
    ) -> list[Vif]:
        return devices.attach_port(self._host, context, instance, port_id)

    @fenced
    def unplug_port(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        vif: Vif,
    ) -> None:
        devices.detach_port(self._host, instance, vif)

    def _progress(self, context: RequestContext, token: OperationToken) -> TransferProgress:
        return TransferProgress(self._host, context, token, is_joined=True)
