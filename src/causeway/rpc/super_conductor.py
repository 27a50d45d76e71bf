"""Calls of a cell's conductor to a super conductor, about records of the API database.

A cell's services connect only to their cell, so these calls use the cell's own message queue, on which the super conductors
listen. Casts wait there for a super conductor, if one has listened before. Lost ones are repeated
(`causeway.conductor.cells.cell`).
"""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.missed import MissedOrder
from causeway.model.outcomes import MoveToken
from causeway.rpc.declare import Client, call, cast
from causeway.virt.live import LiveProgress

TOPIC = "super_conductor"
HISTORY = {
    "1.0": "hosts that are new or back, transfers, missed and late orders; `rate_of` came later: older ones refuse it"
}

# Seconds: less than a compute waits for its cell's conductor.
PROGRESS_TIMEOUT = 5.0
# Seconds: the compute that waits asks again.
MISSED_TIMEOUT = 20.0


def _nobody_says(_client: Client, _context: RequestContext) -> None:
    """Returns None, for a super conductor that is too old for the call."""


class SuperConductorClient(Client):
    """The super conductors, for the conductor of a cell."""

    topic, history = TOPIC, HISTORY

    @cast(since="1.0")
    def map_host(self, context: RequestContext, *, host: str) -> None:
        """Records that a host is in the cell of this queue."""

    @cast(since="1.0")
    def host_is_back(self, context: RequestContext, *, host: str) -> None:
        """Has evacuated servers' guests and disks deleted from a host."""

    @cast(since="1.0")
    def guest_runs(self, context: RequestContext, *, instance_uuid: str) -> None:
        """Has a guest stopped that runs although its server is stopped."""

    @call(since="1.0", timeout=MISSED_TIMEOUT)
    def missed_orders(self, context: RequestContext, *, host: str) -> list[MissedOrder]:
        """The orders that a host missed while it was dead, which it needs when it starts."""

    @call(since="1.0", timeout=MISSED_TIMEOUT)
    def orders_carried_out(self, context: RequestContext, *, host: str, ids: list[str]) -> None:
        """Reports that the host has carried out these missed orders."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def report_progress(self, context: RequestContext, *, token: MoveToken, bytes_done: int, bytes_total: int) -> None:
        """Passes on the progress of a disk transfer.

        Raises Cancelled, StateChanged or TakenOver if the transfer is no longer wanted.
        """

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def report_live_progress(self, context: RequestContext, *, token: MoveToken, progress: LiveProgress) -> str:
        """Passes on the progress of a live migration. Returns the server's uuid. Raises what `report_progress` raises."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT, formerly=_nobody_says)
    def rate_of(self, context: RequestContext, *, token: MoveToken) -> float | None:
        """Bytes a second that a transfer may use; None if there is no limit, or the super conductor is too old to know."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def check_order(self, context: RequestContext, *, token: MoveToken, forward: bool) -> None:
        """Raises TakenOver if an order of a move is late: see `CellConductorClient.check_order`."""
