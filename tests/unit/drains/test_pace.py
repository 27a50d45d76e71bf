"""What may begin now: limits and order. Of windows: see `test_drain_windows`."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from causeway.drains import pace
from causeway.model.drains import FIRST_LIMITS, DrainServer, DrainServerState, First, How, Limits

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
        if load.has_room(pace.Room(limits), server):
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
                assert most is not None and was[key] + more[key] <= most


@given(SERVERS, LIMITS)
def test_nothing_waits_for_which_there_is_room(servers: list[DrainServer], limits: Limits) -> None:
    begun = begin(servers, limits)
    load = pace.load_of(servers)
    for server in begun:
        load.add(server)
    for server in pace.waiting(servers, First.LARGEST, MONDAY):
        assert server in begun or not load.has_room(pace.Room(limits), server)


@given(SERVERS, st.sampled_from(First))
def test_only_those_whose_time_has_come_go_the_largest_of_a_host_first(
    servers: list[DrainServer], first: First
) -> None:
    found = pace.waiting(servers, first, MONDAY)
    assert all(server.state is DrainServerState.PENDING and pace.is_due(server, MONDAY) for server in found)
    ways = {(server.source_host, server.target_host) for server in found}
    for way in ways if first is First.LARGEST else [None]:
        here = [server for server in found if way in (None, (server.source_host, server.target_host))]
        sizes = list(map(pace.size_of, here))
        assert sizes == sorted(sizes, reverse=first is First.LARGEST)
    due = [
        server for server in servers if server.state is DrainServerState.PENDING and server.not_before in (None, MONDAY)
    ]
    assert len(found) == len(due)


def test_the_host_that_has_most_to_do_begins() -> None:
    def server(uuid: str, host: str, size: int, target: str | None = None) -> DrainServer:
        return DrainServer(drain_id="d", instance_uuid=uuid, source_host=host, bytes=size, target_host=target)

    much = [server(f"much{number}", "busy", 10) for number in range(5)]
    little = [server("large", "idle", 30)]
    # Its host sends little, and the one that it goes to receives most of all.
    sent = [server(f"sent{number}", f"one{number}", 9, "target") for number in range(6)]
    found = [each.instance_uuid for each in pace.waiting([*little, *much, *sent], First.LARGEST, MONDAY)]
    assert found[:6] == [f"sent{number}" for number in range(6)]
    assert found[6:] == [f"much{number}" for number in range(5)] + ["large"]


def test_records_are_in_nobodys_way() -> None:
    records = [DrainServer(drain_id="drain", instance_uuid=str(number), how=How.RECORDS) for number in range(3)]
    other = DrainServer(drain_id="drain", instance_uuid="9", source_host="one", bytes=1)
    assert begin([*records, other], Limits(1, 1, 1, 1)) == [other, *records]


def test_what_nobody_has_limited_has_what_was_found_out_and_bytes_limit_the_whole() -> None:
    host, every = pace.Resource("per_source_host", "one"), pace.ALL
    found = {str(host): 5, str(every): 60, pace.BYTES: 3}
    assert pace.Room(Limits()).of(host) == FIRST_LIMITS["per_source_host"]
    assert (pace.Room(Limits(), found).of(host), pace.Room(Limits(), found).of(every)) == (5, 60)
    assert pace.Room(Limits(per_source_host=1), found).of(host) == 1
    assert pace.Room(Limits(bytes_per_second=1), found).of(every) == 3
    assert pace.Room(Limits(bytes_per_second=1, total=2), found).of(every) == 2
