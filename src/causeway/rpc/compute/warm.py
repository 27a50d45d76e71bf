"""Orders of a move that copy the disks of a guest while it runs."""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import OperationToken, Snapshot
from causeway.model.warm import CopyRound, RoundReceived
from causeway.rpc.declare import Client, call

order = call(since="1.14", monitor=True)


def _limits_nobody(host: str, _method: str) -> errors.HostTooOld:
    return errors.HostTooOld(
        "The host's compute service can't limit what its guests write until it is upgraded.", details=f"host {host}"
    )


class WarmCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`. Each order raises WarmCopyImpossible if the host can't carry it out."""

    @order
    def begin_round(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        since: int | None,
        with_swap: bool,
    ) -> CopyRound:
        """Has the source make the server's disks readable as they are now, or only their changes after the round ``since``.

        ``with_swap``: includes swap, for servers whose memory moves too.
        """

    @order
    def receive_round(
        self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance, copied: CopyRound
    ) -> RoundReceived:
        """Has the target fetch a round from the source. Raises HostUnreachable if it can't connect."""

    @order
    def send_part(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        number: int,
        name: str,
        part: int,
        image_id: str,
        codings: list[str],
    ) -> Snapshot:
        """Has the source upload a part of a disk in a round. ``codings``: the codings that both hosts support."""

    @order
    def receive_part(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        copied: CopyRound,
        name: str,
        part: int,
        sent: Snapshot,
    ) -> RoundReceived:
        """Has the target download what `send_part` uploaded, and write it into its copy."""

    @call(since="1.19", monitor=True, too_old=_limits_nobody)
    def limit_writes(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        bytes_per_second: int,
    ) -> None:
        """Has the source limit what the guest writes to each disk, until the rounds end. Without a round nothing happens."""

    @order
    def end_rounds(self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance) -> None:
        """Has the source stop counting changes, and delete what it kept for the rounds."""

    @order
    def discard_copies(self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance) -> None:
        """Has the target delete its copies of the disks."""
