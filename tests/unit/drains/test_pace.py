"""What may begin now: limits and order. Of windows: see `test_drain_windows`."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from causeway.drains import pace
from causeway.model.drains import DrainServer, DrainServerState, First, Limits

MONDAY = datetime(2026, 3, 2)
HOSTS = st.sampled_from(["one", "two", "three"])
CELLS = st.sampled_from(["cell1", "cell2"])
SERVERS = st.lists(
    st.builds(
        DrainServer,
        drain_id=st.just("drain"),
        instance_uuid=st.uuids().map(str),
        state=st.sampled_from(list(DrainServerState)),
        source_cell=CELLS,
        source_host=HOSTS,
        target_cell=st.none() | CELLS,
        target_host=st.none() | HOSTS,
        bytes=st.integers(0, 1 << 40),
        memory_mb=st.integers(0, 1 << 20),
        not_before=st.none() | st.just(MONDAY) | st.just(MONDAY + timedelta(hours=1)),
    ),
    max_size=40,
)
LIMITS = st.builds(
    Limits,
    total=st.integers(1, 10),
    per_source_host=st.integers(1, 5),
    per_target_host=st.integers(1, 5),
    per_cell_pair=st.integers(1, 5),
)


def begin(servers: list[DrainServer], limits: Limits, first: First = First.LARGEST) -> list[DrainServer]:
    """As a look does, if none of them is busy."""
    load, begun = pace.load_of(servers), []
    for server in pace.waiting(servers, first, MONDAY):
        if load.has_room(limits, server):
            load.add(server)
            begun.append(server)
    return begun


@given(SERVERS, LIMITS)
def test_limits_are_kept_unless_they_were_exceeded_before(servers: list[DrainServer], limits: Limits) -> None:
    before = [server for server in servers if server.state in pace.UNDER_WAY]
    begun = begin(servers, limits)
    for most, place in (
        (limits.total, lambda _server: "all"),
        (limits.per_source_host, lambda server: server.source_host),
        (limits.per_target_host, lambda server: server.target_host),
        (limits.per_cell_pair, lambda server: server.target_cell and (server.source_cell, server.target_cell)),
    ):
        was, more = Counter(map(place, before)), Counter(map(place, begun))
        for key in more:
            if key is not None:
                assert was[key] + more[key] <= most


@given(SERVERS, LIMITS)
def test_nothing_waits_for_which_there_is_room(servers: list[DrainServer], limits: Limits) -> None:
    begun = begin(servers, limits)
    load = pace.load_of(servers)
    for server in begun:
        load.add(server)
    for server in pace.waiting(servers, First.LARGEST, MONDAY):
        assert server in begun or not load.has_room(limits, server)


@given(SERVERS, st.sampled_from(First))
def test_only_those_whose_time_has_come_go_in_order_of_size(servers: list[DrainServer], first: First) -> None:
    found = pace.waiting(servers, first, MONDAY)
    assert all(server.state is DrainServerState.PENDING and pace.is_due(server, MONDAY) for server in found)
    sizes = [server.bytes + server.memory_mb * 1024 * 1024 for server in found]
    assert sizes == sorted(sizes, reverse=first is First.LARGEST)
    due = [
        server for server in servers if server.state is DrainServerState.PENDING and server.not_before in (None, MONDAY)
    ]
    assert len(found) == len(due)
