"""What a conductor orders of hosts while a guest runs that is to move: its disks are copied beside it."""

from __future__ import annotations

from typing import Any, TypeVar

from causeway import errors
from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import MoveToken, Snapshot
from causeway.model.warm import CopyRound, RoundReceived
from causeway.rpc.client import RpcClient
from causeway.rpc.compute_guests import NOTHING

T = TypeVar("T")


class ComputeWarm:
    """A part of `causeway.rpc.compute.ComputeClient`. Raises WarmCopyImpossible for hosts of an older version."""

    _rpc: RpcClient

    def begin_round(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        since: int | None,
        with_swap: bool,
    ) -> CopyRound:
        """The source makes the server's disks readable as they are now, or what changed of them since a round.

        ``with_swap``: of servers that do not boot on their way, whose hosts are new enough.
        """
        # Others need no host that knows of it.
        more = {"with_swap": True} if with_swap else {}
        return self._order_warm(
            "begin_round",
            CopyRound,
            context,
            host,
            token=token,
            instance=instance,
            block_devices=block_devices,
            since=since,
            **more,
        )

    def receive_round(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, copied: CopyRound
    ) -> RoundReceived:
        """The target fetches a round from the source. Raises HostUnreachable if it can't connect to it."""
        return self._order_warm(
            "receive_round", RoundReceived, context, host, token=token, instance=instance, copied=copied
        )

    def send_part(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        number: int,
        name: str,
        part: int,
        image_id: str,
        codings: list[str],
    ) -> Snapshot:
        """The source uploads a part of a disk in a round. ``codings``: what both hosts know, and have told."""
        # Sources that told of none may not know the word.
        given = {"codings": codings} if codings else {}
        return self._order_warm(
            "send_part",
            Snapshot,
            context,
            host,
            token=token,
            instance=instance,
            number=number,
            name=name,
            part=part,
            image_id=image_id,
            **given,
        )

    def receive_part(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        copied: CopyRound,
        name: str,
        part: int,
        sent: Snapshot,
    ) -> RoundReceived:
        """The target downloads what `send_part` uploaded, and puts it in."""
        return self._order_warm(
            "receive_part",
            RoundReceived,
            context,
            host,
            token=token,
            instance=instance,
            copied=copied,
            name=name,
            part=part,
            sent=sent,
        )

    def end_rounds(self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance) -> None:
        """Nothing of rounds stays at the source."""
        self._order_warm("end_rounds", NOTHING, context, host, token=token, instance=instance)

    def discard_copies(self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance) -> None:
        """Nothing of what came stays at the target."""
        self._order_warm("discard_copies", NOTHING, context, host, token=token, instance=instance)

    def _order_warm(self, method: str, result: type[T], context: RequestContext, host: str, **given: Any) -> T:
        too_old = errors.WarmCopyImpossible(
            "A host is of a version that can't copy disks while their guest runs.", details=f"host {host}"
        )
        return self._rpc.order_if_known(
            context, method, version=versions.WARM_RPC, too_old=too_old, result=result, server=host, **given
        )
