"""A cell is drained in simulated time by the code that paces real ones: near what the slowest resource allows."""

from __future__ import annotations

from benchmarks.drains import simulated
from causeway.model.drains import Limits


def test_limits_that_are_found_out_use_what_bounds_the_drain_and_drown_nothing() -> None:
    servers, dirty = simulated.cell_of(200, 10, 20)
    speeds = simulated.Speeds()

    def drained(limits: Limits, *, climbs: bool) -> simulated.Drained:
        return simulated.drain("", servers, dirty, speeds, limits, climbs=climbs)

    found = drained(Limits(), climbs=True)
    # Most of its time is the climb: it is a small cell.
    assert found.over_bound < 0.5
    assert found.hours < drained(Limits(20, 2, 2, 10), climbs=False).hours
    crowded = drained(Limits(200, 200, 200, 200), climbs=False)
    assert found.hours < crowded.hours and found.pause_worst < crowded.pause_worst


def test_one_after_the_other_takes_as_long_as_all_of_them_together() -> None:
    servers, dirty = simulated.cell_of(20, 4, 4)
    one = Limits(1, 1, 1, 1)
    found = simulated.drain("", servers, dirty, simulated.Speeds(), one, climbs=False)
    alone = sum(server.bytes for server in servers) / (simulated.Speeds().stream * (1 << 20) * 3600)
    assert found.most_at_once == 1 and found.hours > alone
