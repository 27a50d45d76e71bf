"""What the conductor of a cell hands up, because only the API database has it.

Nothing of a cell reaches out of it: this goes over the cell's own message queue, on which the super conductors listen. Casts
wait there for a super conductor, if one has listened before; what got lost is said again (`causeway.conductor.cells.cell`).
"""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.missed import MissedOrder
from causeway.model.outcomes import MoveToken
from causeway.rpc.client import RpcClient
from causeway.rpc.transport import Transport
from causeway.virt.live import LiveProgress

TOPIC = "super_conductor"
VERSION = "1.0"

NOTHING: type[None] = type(None)
# Seconds: less than a compute waits for its cell's conductor.
PROGRESS_TIMEOUT = 5.0
# Seconds: the compute that waits asks again.
MISSED_TIMEOUT = 20.0


class SuperConductorClient:
    """The super conductors, as the conductor of a cell sees them."""

    def __init__(self, transport: Transport) -> None:
        self._rpc = RpcClient(transport, TOPIC, version=VERSION)

    def map_host(self, context: RequestContext, *, host: str) -> None:
        """Notes in which cell a host is: in the one whose queue this is."""
        self._rpc.cast(context, "map_host", host=host)

    def host_is_back(self, context: RequestContext, *, host: str) -> None:
        """Has what was evacuated from a host removed there."""
        self._rpc.cast(context, "host_is_back", host=host)

    def guest_runs(self, context: RequestContext, *, instance_uuid: str) -> None:
        """Has a guest stopped that runs though its server is stopped."""
        self._rpc.cast(context, "guest_runs", instance_uuid=instance_uuid)

    def missed_orders(self, context: RequestContext, *, host: str) -> list[MissedOrder]:
        """What a host that starts was not told while it was dead."""
        return self._rpc.call(context, "missed_orders", result=list[MissedOrder], timeout=MISSED_TIMEOUT, host=host)

    def orders_carried_out(self, context: RequestContext, *, host: str, ids: list[str]) -> None:
        """Those of its missed orders are done."""
        self._rpc.call(context, "orders_carried_out", result=NOTHING, timeout=MISSED_TIMEOUT, host=host, ids=ids)

    def report_progress(self, context: RequestContext, *, token: MoveToken, bytes_done: int, bytes_total: int) -> None:
        """Hands on how far the transfer of a disk has come.

        Raises Cancelled, StateChanged or TakenOver if it is not wanted any more.
        """
        self._rpc.call(
            context,
            "report_progress",
            result=NOTHING,
            timeout=PROGRESS_TIMEOUT,
            token=token,
            bytes_done=bytes_done,
            bytes_total=bytes_total,
        )

    def report_live_progress(self, context: RequestContext, *, token: MoveToken, progress: LiveProgress) -> str:
        """Hands on how far a live migration has come; returns the server's uuid. Raises what `report_progress` does."""
        return self._rpc.call(
            context,
            "report_live_progress",
            result=str,
            timeout=PROGRESS_TIMEOUT,
            token=token,
            progress=progress,
        )

    def rate_of(self, context: RequestContext, *, token: MoveToken) -> float | None:
        """Bytes a second that a transfer may have; None: nobody says, or the super conductor is too old to know."""
        try:
            return self._rpc.call(context, "rate_of", result=float | None, timeout=PROGRESS_TIMEOUT, token=token)  # type: ignore[arg-type]
        except errors.NoSuchMethod:
            return None

    def check_order(self, context: RequestContext, *, token: MoveToken, forward: bool) -> None:
        """Raises TakenOver if an order of a move is late: see `CellConductorClient.check_order`."""
        self._rpc.call(context, "check_order", result=NOTHING, timeout=PROGRESS_TIMEOUT, token=token, forward=forward)
