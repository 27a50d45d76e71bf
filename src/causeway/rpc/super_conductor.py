"""What the conductor of a cell hands up, because only the API database has it.

Nothing of a cell reaches out of it: this goes over the cell's own message queue, on which the super conductors listen. Casts
wait there for a super conductor, if one has listened before; what got lost is said again (`causeway.conductor.cells.cell`).
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
    """A super conductor that is too old to know."""


class SuperConductorClient(Client):
    """The super conductors, as the conductor of a cell sees them."""

    topic, history = TOPIC, HISTORY

    @cast(since="1.0")
    def map_host(self, context: RequestContext, *, host: str) -> None:
        """Notes in which cell a host is: in the one whose queue this is."""

    @cast(since="1.0")
    def host_is_back(self, context: RequestContext, *, host: str) -> None:
        """Has what was evacuated from a host removed there."""

    @cast(since="1.0")
    def guest_runs(self, context: RequestContext, *, instance_uuid: str) -> None:
        """Has a guest stopped that runs though its server is stopped."""

    @call(since="1.0", timeout=MISSED_TIMEOUT)
    def missed_orders(self, context: RequestContext, *, host: str) -> list[MissedOrder]:
        """The orders that a host missed while it was dead, for its start."""

    @call(since="1.0", timeout=MISSED_TIMEOUT)
    def orders_carried_out(self, context: RequestContext, *, host: str, ids: list[str]) -> None:
        """Those of its missed orders are done."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def report_progress(self, context: RequestContext, *, token: MoveToken, bytes_done: int, bytes_total: int) -> None:
        """Hands on how far the transfer of a disk has come.

        Raises Cancelled, StateChanged or TakenOver if it is not wanted any more.
        """

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def report_live_progress(self, context: RequestContext, *, token: MoveToken, progress: LiveProgress) -> str:
        """Hands on how far a live migration has come; returns the server's uuid. Raises what `report_progress` does."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT, formerly=_nobody_says)
    def rate_of(self, context: RequestContext, *, token: MoveToken) -> float | None:
        """Bytes a second that a transfer may have; None: nobody says, or the super conductor is too old to know."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def check_order(self, context: RequestContext, *, token: MoveToken, forward: bool) -> None:
        """Raises TakenOver if an order of a move is late: see `CellConductorClient.check_order`."""
