"""What the computes of a cell tell their cell's conductor, over the cell's message queue."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.missed import MissedOrder
from causeway.model.outcomes import HostReport, MoveToken, RecordedClaim
from causeway.rpc.client import RpcClient
from causeway.rpc.transport import Transport
from causeway.virt.live import LiveProgress

TOPIC = "cell_conductor"
VERSION = "1.0"

NOTHING: type[None] = type(None)
# Seconds: a transfer does not stand still for the sake of its report.
PROGRESS_TIMEOUT = 10.0


class CellConductorClient:
    """The conductor of the cell, as its computes see it."""

    def __init__(self, transport: Transport) -> None:
        self._rpc = RpcClient(transport, TOPIC, version=VERSION)

    def report_host(self, context: RequestContext, *, report: HostReport) -> bool:
        """Tells that the host is alive and what it has; returns whether the host is enabled."""
        return self._rpc.call(context, "report_host", result=bool, report=report)

    def missed_orders(self, context: RequestContext, *, host: str) -> list[MissedOrder]:
        """What a host that starts is to clean up first: what it was not told while it was dead."""
        return self._rpc.call(context, "missed_orders", result=list[MissedOrder], host=host)

    def orders_carried_out(self, context: RequestContext, *, host: str, ids: list[str]) -> None:
        """Those of its missed orders are done."""
        self._rpc.call(context, "orders_carried_out", result=NOTHING, host=host, ids=ids)

    def report_progress(
        self, context: RequestContext, *, token: MoveToken, bytes_done: int, bytes_total: int
    ) -> float | None:
        """Tells how far the transfer of a disk has come; returns bytes a second that it may have from now on, None: any.

        Raises Cancelled, StateChanged or TakenOver if it is not wanted any more.
        """
        return self._rpc.call(
            context,
            "report_progress",
            result=float | None,  # type: ignore[arg-type]
            timeout=PROGRESS_TIMEOUT,
            token=token,
            bytes_done=bytes_done,
            bytes_total=bytes_total,
        )

    def report_live_progress(
        self, context: RequestContext, *, token: MoveToken, progress: LiveProgress
    ) -> float | None:
        """Tells how far a live migration has come. Returns and raises what `report_progress` does."""
        return self._rpc.call(
            context,
            "report_live_progress",
            result=float | None,  # type: ignore[arg-type]
            timeout=PROGRESS_TIMEOUT,
            token=token,
            progress=progress,
        )

    def check_order(self, context: RequestContext, *, token: MoveToken, forward: bool) -> None:
        """Asks whether an order of a move is wanted now; ``forward``: it is only if the move goes forward.

        Raises TakenOver if it is late.
        """
        self._rpc.call(context, "check_order", result=NOTHING, timeout=PROGRESS_TIMEOUT, token=token, forward=forward)

    def recorded_claims(self, context: RequestContext, *, host: str, instance_uuids: list[str]) -> list[RecordedClaim]:
        """What a host should hold for these servers, by their records."""
        return self._rpc.call(
            context, "recorded_claims", result=list[RecordedClaim], host=host, instance_uuids=instance_uuids
        )
