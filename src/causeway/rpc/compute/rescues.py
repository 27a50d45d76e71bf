"""What a conductor orders computes to do for rescues; each is carried out once for its operation."""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, MoveToken
from causeway.model.rescue import RescueImage
from causeway.rpc.declare import Client, call


def _cannot_rescue(host: str, _call: str) -> errors.HostTooOld:
    return errors.HostTooOld(
        f"Host {host} can't rescue servers yet: its compute service is of an earlier release, or held to one."
    )


order = call(since="1.10", monitor=True, too_old=_cannot_rescue)


class RescueCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`.

    Each order raises TakenOver if another conductor owns the operation, and ClaimRefused if the operation has undone it since.
    """

    @order
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

    @order
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

    @order
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

    @order
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

    @order
    def delete_rescue_disk(self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance) -> None:
        """Raises GuestFailed while the guest has it."""
