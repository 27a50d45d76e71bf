"""Five thousand servers are packed and scheduled in memory: that it is done at all, and holds."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from causeway.drains.schedule import Pace, Transfer, bound_of, simulate
from causeway.model.drains import Limits, Window
from causeway.scheduler.many import Mover
from tests.unit.scheduler.packing_hosts import host, pack, spec

SIZES = (2048, 4096, 8192, 16384, 65536)
SERVERS, SOURCES, TARGETS = 5000, 200, 500


def test_five_thousand_servers_are_planned() -> None:
    hosts = [host(f"t{number:04}", 262_144) for number in range(TARGETS)]
    specs = [spec(size) for size in SIZES]
    servers = [
        Mover(f"s{number:05}", number % len(SIZES), host=f"source{number % SOURCES}") for number in range(SERVERS)
    ]
    packing = pack(hosts, specs, servers)
    assert len(packing.places) + len(packing.homeless) == SERVERS
    used = Counter({each.host: 0 for each in hosts})
    for mover in servers:
        if mover.uuid in packing.places:
            used[packing.places[mover.uuid].host] += SIZES[mover.spec]
    assert max(used.values()) <= 262_144
    assert not packing.homeless

    transfers = [
        Transfer(mover.uuid, mover.host, packing.places[mover.uuid].host, ("cell1", "cell2"), 20_480.0, 25.0)
        for mover in servers
    ]
    begin = datetime(2027, 3, 1)
    windows = (Window([0, 1, 2, 3, 4], "22:00", "06:00", "Europe/Zurich"),)
    pace = Pace(Limits(total=100, per_cell_pair=100), 1000.0, windows)
    times = simulate(transfers, pace, begin)
    assert len(times.ended) == SERVERS
    bound = bound_of(transfers, pace, begin, times.makespan)
    assert bound is not None and bound.seconds < times.makespan
