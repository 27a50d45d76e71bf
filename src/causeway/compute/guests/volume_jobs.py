"""Changes volumes that guests have open; `causeway.virt.driver.volume_jobs` says why no write is lost."""

from __future__ import annotations

from causeway.compute.guests import guest
from causeway.compute.host import Host
from causeway.compute.host.fence import fenced
from causeway.compute.host.transfer_progress import TransferProgress
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import CopiedVolume, OperationToken


class VolumeJobsEndpoint:
    """RPC: copy_volume, switch_volume, end_volume_swap; snapshot_volume, merge_volume_files.

    The server's task excludes other operations meanwhile, so a copy, which may take hours, holds no lock.
    """

    def __init__(self, host: Host) -> None:
        self.fence = host.fence
        self._host = host

    @fenced
    def copy_volume(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        old: BlockDevice,
        new: BlockDevice,
    ) -> CopiedVolume:
        progress = TransferProgress(self._host, context, token, is_joined=True)
        with guest.connected_volumes(self._host, context, [new]) as (connected,):
            self._host.driver.copy_volume(instance.uuid, old, connected, progress)
        return CopiedVolume(connected, progress.bytes_done)

    @fenced
    def switch_volume(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        old: BlockDevice,
        new: BlockDevice,
    ) -> bool:
        with self._host.lock(instance.uuid):
            return self._host.driver.switch_volume(instance.uuid, old, new)

    @fenced
    def end_volume_swap(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        old: BlockDevice,
        new: BlockDevice,
        keep_new: bool,
    ) -> None:
        with self._host.lock(instance.uuid):
            # If the copy's answer was lost, only the volume service knows how the new volume was connected.
            (connected,) = guest.with_connections(self._host, context, [new])
            self._host.driver.end_volume_swap(instance.uuid, old, connected, keep_new=keep_new)

    @fenced
    def snapshot_volume(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        block_device: BlockDevice,
        new_file: str,
    ) -> bool:
        with self._host.lock(instance.uuid):
            return self._host.driver.snapshot_volume(instance, block_device, new_file)

    @fenced
    def merge_volume_files(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_device: BlockDevice,
        merged: str | None,
        into: str | None,
    ) -> int | None:
        progress = TransferProgress(self._host, context, token, is_joined=True)
        self._host.driver.merge_volume_files(instance, block_device, merged, into, progress)
        return progress.bytes_done
