"""What a conductor orders computes to do for rescues; each is carried out once for its operation."""

from __future__ import annotations

from typing import TypeVar

from causeway import errors
from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, MoveToken
from causeway.model.rescue import RescueImage
from causeway.rpc.client import RpcClient

T = TypeVar("T")


class ComputeRescue:
    """A part of `causeway.rpc.compute.ComputeClient`.

    Each order raises TakenOver if another conductor owns the operation, and ClaimRefused if the operation has undone it since.
    """

    _rpc: RpcClient

    def rescue_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        image: RescueImage,
    ) -> GuestOutcome:
        """The guest is powered off, and boots a disk of the image instead of its own. Raises HostTooOld."""
        return self._order_rescue(
            context,
            host,
            "rescue_guest",
            GuestOutcome,
            token=token,
            instance=instance,
            block_devices=block_devices,
            image=image,
        )

    def undo_rescue(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        power_on: bool,
    ) -> None:
        """The guest has its own disk again, and runs if ``power_on``; the rescue disk is deleted.

        Nothing, if `rescue_guest` did not come to the guest. Raises HostTooOld if it never could.
        """
        self._order_rescue(
            context,
            host,
            "undo_rescue",
            type(None),
            token=token,
            instance=instance,
            block_devices=block_devices,
            power_on=power_on,
        )

    def unrescue_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        """The guest runs from its own disk; its rescue disk stays until `delete_rescue_disk`."""
        return self._order_rescue(
            context,
            host,
            "unrescue_guest",
            GuestOutcome,
            token=token,
            instance=instance,
            block_devices=block_devices,
        )

    def undo_unrescue(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        image: RescueImage,
    ) -> None:
        """The guest boots its rescue disk again, which was made of ``image``."""
        self._order_rescue(
            context,
            host,
            "undo_unrescue",
            type(None),
            token=token,
            instance=instance,
            block_devices=block_devices,
            image=image,
        )

    def delete_rescue_disk(self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance) -> None:
        """Raises GuestFailed while the guest has it."""
        self._order_rescue(context, host, "delete_rescue_disk", type(None), token=token, instance=instance)

    def _order_rescue(self, context: RequestContext, host: str, method: str, result: type[T], **arguments: object) -> T:
        too_old = errors.HostTooOld(
            f"Host {host} can't rescue servers yet: its compute service is of an earlier release, or held to one."
        )
        return self._rpc.order_if_known(
            context,
            method,
            version=versions.RESCUE_RPC,
            too_old=too_old,
            result=result,
            server=host,
            **arguments,
        )
