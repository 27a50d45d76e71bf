"""CrossCellWeigher."""

from __future__ import annotations

from causeway.scheduler.filters.base import Request
from causeway.scheduler.host_state import HostState
from causeway.scheduler.weighers.base import HostWeigher


class CrossCellWeigher(HostWeigher, of_host_alone=False):
    """Prefers hosts of the server's cell for a move; with a negative multiplier, hosts of other cells (draining).

    Concerns only moves that may cross cells.
    """

    option = "cross_cell_move_weight_multiplier"

    def concerns(self, request: Request) -> bool:
        return request.spec.preferred_cell is not None

    def weigh(self, host: HostState, request: Request) -> float:
        preferred = request.spec.preferred_cell
        if preferred is None:
            return 0.0
        return 1.0 if host.cell_uuid == preferred else -1.0
