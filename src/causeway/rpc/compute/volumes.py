"""Orders for volumes that guests have open. Each is carried out once for its operation."""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import CopiedVolume, MoveToken
from causeway.rpc.declare import Client, call


def _no_volume_jobs(host: str, _call: str) -> errors.HostTooOld:
    return errors.HostTooOld(
        f"Host {host} can't do that to volumes in use yet: its compute service is of an earlier release, or held to one."
    )


order = call(since="1.14", monitor=True, too_old=_no_volume_jobs)


class VolumeCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`.

    Every order raises HostTooOld, TakenOver and ClaimRefused as those of rescues do.
    """

    @order
    def copy_volume(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        old: BlockDevice,
        new: BlockDevice,
    ) -> CopiedVolume:
        """Connects ``new``, copies ``old`` to it and keeps both equal, until one of the next two orders.

        The guest continues to run.
        """

    @order
    def switch_volume(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
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
        token: MoveToken,
        instance: Instance,
        old: BlockDevice,
        new: BlockDevice,
        keep_new: bool,
    ) -> None:
        """Ends copying, and disconnects the other volume. Raises GuestFailed if the guest uses that one."""

    @order
    def snapshot_volume(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
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
        token: MoveToken,
        instance: Instance,
        block_device: BlockDevice,
        merged: str | None,
        into: str | None,
    ) -> int | None:
        """Merges files of a volume (`VolumeJobMethods.merge_volume_files`). Returns the bytes that were moved, if counted."""
