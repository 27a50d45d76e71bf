"""What the computes of a cell report to their cell's conductor, over the cell's message queue."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.missed import MissedOrder
from causeway.model.outcomes import HostReport, MoveToken, RecordedClaim
from causeway.rpc.declare import Client, call
from causeway.virt.live import LiveProgress

TOPIC = "cell_conductor"
HISTORY = {
    "1.0": "reports of hosts and of transfers, orders that hosts missed, whether an order is late, recorded claims"
}

# Seconds: a transfer does not stand still for the sake of its report.
PROGRESS_TIMEOUT = 10.0


class CellConductorClient(Client):
    """The conductor of the cell, as its computes see it."""

    topic, history = TOPIC, HISTORY

    @call(since="1.0")
    def report_host(self, context: RequestContext, *, report: HostReport) -> bool:
        """Reports that the host is alive and what it has; returns whether the host is enabled."""

    @call(since="1.0")
    def missed_orders(self, context: RequestContext, *, host: str) -> list[MissedOrder]:
        """What a host that starts is to clean up first: the orders that it missed while it was dead."""

    @call(since="1.0")
    def orders_carried_out(self, context: RequestContext, *, host: str, ids: list[str]) -> None:
        """Those of its missed orders are done."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def report_progress(
        self, context: RequestContext, *, token: MoveToken, bytes_done: int, bytes_total: int
    ) -> float | None:
        """Reports how far the transfer of a disk has come; returns bytes a second that it may have from now on, None: any.

        Raises Cancelled, StateChanged or TakenOver if it is not wanted any more.
        """

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def report_live_progress(
        self, context: RequestContext, *, token: MoveToken, progress: LiveProgress
    ) -> float | None:
        """Reports how far a live migration has come. Returns and raises what `report_progress` does."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def check_order(self, context: RequestContext, *, token: MoveToken, forward: bool) -> None:
        """Asks whether an order of a move is wanted now; ``forward``: it is only if the move goes forward.

        Raises TakenOver if it is late.
        """

    @call(since="1.0")
    def recorded_claims(self, context: RequestContext, *, host: str, instance_uuids: list[str]) -> list[RecordedClaim]:
        """What a host should hold for these servers, by their records."""
