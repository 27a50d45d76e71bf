"""Orders for volumes that guests have open. A host carries out each order once for its operation."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import CopiedVolume, OperationToken
from causeway.rpc.declare import Client, call

order = call(since="1.14", monitor=True)


class VolumeCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`.

    Each order raises TakenOver if another conductor owns the operation, and ClaimRefused if the operation has undone it since.
    """

    @order
    def copy_volume(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        old: BlockDevice,
        new: BlockDevice,
    ) -> CopiedVolume:
        """Connects ``new`` and copies ``old`` to it while the guest runs.

        Keeps both equal until `switch_volume` or `end_volume_swap`.
        """

    @order
    def switch_volume(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        old: BlockDevice,
        new: BlockDevice,
    ) -> bool:
        """Switches the guest to ``new``. Returns False if the copy broke off and the guest still uses ``old``."""

    @order
    def end_volume_swap(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        old: BlockDevice,
        new: BlockDevice,
        keep_new: bool,
    ) -> None:
        """Ends copying, and disconnects ``old`` if ``keep_new``, else ``new``. Raises GuestFailed if the guest uses it."""

    @order
    def snapshot_volume(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_device: BlockDevice,
        new_file: str,
    ) -> bool:
        """Has the guest write to another file of its volume from now on. Returns False if the hypervisor refused."""

    @order
    def merge_volume_files(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_device: BlockDevice,
        merged: str | None,
        into: str | None,
    ) -> int | None:
        """Merges files of a volume (`VolumeJobMethods.merge_volume_files`). Returns how many bytes it moved; None if unknown."""
