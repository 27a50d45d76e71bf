"""Whatever moves between cells, and whichever cell is down, between the reads of a list: it shows each server exactly once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causeway.model.states import ServerStatus, VmState
from causeway.store import listing, streams
from causeway.store.api import build_requests, mappings
from causeway.store.conditions import HasStatus, Matches
from causeway.store.listed import Listed
from causeway.store.listing import ServerQuery, SortKey
from causeway.store.server_rows import after, key_of, sort_rows
from tests.unit.store.listed_cloud import (
    ALIVE,
    Cloud,
    Interleaved,
    break_cell,
    has_metadata,
    writes_of_a_move,
)


@settings(
    max_examples=120,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    schedule=st.lists(st.integers(0, 4), max_size=10),
    home=st.integers(0, 1),
    way=st.sampled_from(["confirm", "revert"]),
)
def test_a_moving_server_is_listed_exactly_once(module_cloud: Cloud, schedule: list[int], home: int, way: str) -> None:
    """Whatever part of a move happens between the reads - all of it and the confirm, too."""
    cloud = module_cloud
    cloud.empty()
    server = cloud.server("moving", home, at=5)
    cloud.server("first", 0, at=9)
    cloud.server("last", 1, at=1)
    writes = writes_of_a_move(cloud, server, home, way)
    with pytest.MonkeyPatch.context() as monkeypatch:
        Interleaved(cloud, monkeypatch, schedule, writes)
        assert cloud.names() == ["first", "moving", "last"]


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(
    schedule=st.lists(st.integers(0, 4), max_size=16),
    home=st.integers(0, 1),
    way=st.sampled_from(["confirm", "revert"]),
    others=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), max_size=8),
    size=st.integers(2, 4),
)
def test_a_moving_server_is_listed_exactly_once_by_many_small_reads(
    module_cloud: Cloud, schedule: list[int], home: int, way: str, others: list[tuple[int, int]], size: int
) -> None:
    """The cells are read a few rows at a time, and between any two reads a part of the move happens."""
    cloud = module_cloud
    cloud.empty()
    server = cloud.server("moving", home, at=5)
    for number, (cell, at) in enumerate(others):
        cloud.server(f"other{number}", cell, at=at)
    writes = writes_of_a_move(cloud, server, home, way)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(streams, "SLACK", 1)
        monkeypatch.setattr(listing, "SLACK", 1)
        Interleaved(cloud, monkeypatch, schedule, writes)
        shown = [name for page in cloud.pages(size) for name in page]
    assert sorted(shown) == sorted(["moving", *(f"other{number}" for number in range(len(others)))])


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(schedule=st.lists(st.integers(0, 2), max_size=8))
def test_a_server_that_gets_its_cell_is_listed_exactly_once(module_cloud: Cloud, schedule: list[int]) -> None:
    cloud = module_cloud
    cloud.empty()
    server = cloud.build_request("new", at=3)
    cloud.server("old", 1, at=1)

    def hand_over() -> None:
        with cloud.api.write() as connection:
            mappings.set_cell_in(connection, server.uuid, cloud.uuids[0], expected=None)
            build_requests.delete_in(connection, server.uuid)

    with pytest.MonkeyPatch.context() as monkeypatch:
        Interleaved(cloud, monkeypatch, schedule, [lambda: cloud.insert(server, 0), hand_over])
        assert cloud.names() == ["new", "old"]


def test_a_server_seen_in_neither_cell_is_looked_up_again(module_cloud: Cloud) -> None:
    """The worst case: the new cell is read before the copy is written, the old one after its row has gone."""
    cloud = module_cloud
    cloud.empty()
    server = cloud.server("moving", 1)
    writes = [
        lambda: cloud.begin_move(server),
        lambda: cloud.copy(server, 0),
        lambda: cloud.switch(server, 1, 0),
        lambda: cloud.hard_delete(server, 1),
        lambda: cloud.end_move(server),
    ]
    with pytest.MonkeyPatch.context() as monkeypatch:
        # nothing before the build requests; cell1 first; nothing before it; everything before cell2
        Interleaved(cloud, monkeypatch, [0, 1, 0, 5], writes)
        assert cloud.names() == ["moving"]


# home, copy elsewhere, name, host, state, seconds
SERVERS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, None]),
        st.booleans(),
        st.sampled_from(["a", "B", "ab", "é"]),
        st.sampled_from([None, "h1", "H2"]),
        st.sampled_from([VmState.ACTIVE, VmState.ERROR]),
        st.integers(0, 2),
    ),
    max_size=14,
)
SORTS: list[tuple[SortKey, ...]] = [
    (SortKey("display_name"),),
    (SortKey("display_name", descending=True), SortKey("host")),
    (SortKey("host", descending=True),),
    (SortKey("host"), SortKey("vm_state", descending=True), SortKey("created_at")),
    (SortKey("flavorid"), SortKey("launched_at", descending=True)),
]
CONDITIONS: list[list[Any]] = [
    [ALIVE],
    [ALIVE, Matches("display_name", "[aB]")],
    [ALIVE, HasStatus((ServerStatus.ERROR,))],
    [ALIVE, has_metadata(odd="yes")],
]


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    servers=SERVERS,
    size=st.integers(1, 7),
    sort=st.sampled_from(SORTS),
    conditions=st.sampled_from(CONDITIONS),
    slack=st.integers(1, 2),
    down=st.none() | st.tuples(st.integers(0, 1), st.integers(1, 2)),
)
def test_pages_are_what_the_whole_list_is_cut_into(
    module_cloud: Cloud,
    servers: list[tuple[int | None, bool, str, str | None, VmState, int]],
    size: int,
    sort: tuple[SortKey, ...],
    conditions: list[Any],
    slack: int,
    down: tuple[int, int] | None,
) -> None:
    """The whole list: of each server the row of its own cell, sorted by ourselves. From every marker, also with a cell down."""
    cloud = module_cloud
    cloud.empty()
    everybody: list[Listed] = []
    for number, (home, copied, name, host, state, at) in enumerate(servers):
        fields = {"at": at, "display_name": name, "metadata": {"odd": "yes" if number % 2 else "no"}}
        if home is None:
            instance = cloud.build_request(f"s{number}", **fields)
        else:
            instance = cloud.server(f"s{number}", home, **fields, host=host, vm_state=state)
            if copied:
                cloud.copy(instance, 1 - home)
        everybody.append(Listed.of(instance, None if home is None else cloud.uuids[home], []))
    whole = ServerQuery("p", 1000, conditions, sort)
    sort_rows(whole, everybody)
    fitting = [server for server in everybody if whole.matches(server)]
    for marker in [None, *everybody]:
        behind = [server for server in fitting if marker is None or after(whole, server, key_of(whole, marker))]
        query = ServerQuery("p", size, conditions, sort, None if marker is None else marker.uuid)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(streams, "SLACK", slack)
            patched.setattr(streams, "FEWEST_TO_LOOK_AT", slack)
            patched.setattr(listing, "SLACK", slack)
            if down is not None:
                break_cell(cloud, patched, *down)
            page = listing._of_all_cells(cloud.cells, query)
        dead = {cell.uuid for cell in page.down}
        answered = [server for server in behind if server.cell_uuid not in dead]
        shown = [(row.uuid, row.cell_uuid) for row in page.servers if row.cell_uuid not in dead]
        assert shown == [(server.uuid, server.cell_uuid) for server in answered][: len(shown)]
        if not dead:
            assert len(shown) == min(size, len(behind))
            assert page.more == (len(behind) > size)
