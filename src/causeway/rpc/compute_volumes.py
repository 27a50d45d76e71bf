"""What a conductor orders computes to do to volumes that guests have open; each is carried out once for its operation."""

from __future__ import annotations

from typing import TypeVar

from causeway import errors
from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import CopiedVolume, MoveToken
from causeway.rpc.client import RpcClient

T = TypeVar("T")


class ComputeVolumes:
    """A part of `causeway.rpc.compute.ComputeClient`. Every order raises HostTooOld, TakenOver and ClaimRefused as those of
    rescues do.
    """

    _rpc: RpcClient

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
        """Connects ``new``, copies ``old`` to it and keeps both alike, until one of the next two. The guest goes on."""
        return self._order_volume_job(
            context, host, "copy_volume", CopiedVolume, token=token, instance=instance, old=old, new=new
        )

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
        """The guest uses ``new`` from now on; False: the copy broke off, and it uses ``old``."""
        return self._order_volume_job(
            context, host, "switch_volume", bool, token=token, instance=instance, old=old, new=new
        )

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
        """Nothing is copied any more, and the other volume is disconnected. Raises GuestFailed if the guest uses that one."""
        self._order_volume_job(
            context,
            host,
            "end_volume_swap",
            type(None),
            token=token,
            instance=instance,
            old=old,
            new=new,
            keep_new=keep_new,
        )

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
        """The guest writes to another file of its volume from now on; False: it was refused, and it does not."""
        return self._order_volume_job(
            context,
            host,
            "snapshot_volume",
            bool,
            token=token,
            instance=instance,
            block_device=block_device,
            new_file=new_file,
        )

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
        """Merges files of a volume (`VolumeJobs.merge_volume_files`); returns the bytes that were moved, if they were counted."""
        return self._order_volume_job(
            context,
            host,
            "merge_volume_files",
            int | None,  # type: ignore[arg-type]
            token=token,
            instance=instance,
            block_device=block_device,
            merged=merged,
            into=into,
        )

    def _order_volume_job(
        self, context: RequestContext, host: str, method: str, result: type[T], **arguments: object
    ) -> T:
        too_old = errors.HostTooOld(
            f"Host {host} can't do that to volumes in use yet: its compute service is of an earlier release, or held to one."
        )
        return self._rpc.order_if_known(
            context,
            method,
            version=versions.VOLUME_JOBS_RPC,
            too_old=too_old,
            result=result,
            server=host,
            **arguments,
        )
