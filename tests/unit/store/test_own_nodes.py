"""Which nodes are their hosts' own: what the API database records of hosts, and who is believed by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway import errors
from causeway.model.host import CellMapping, ComputeNode, HostMapping
from causeway.store.api import cells
from causeway.store.database import Database
from causeway.store.own_nodes import OwnNodes


def node(host: str, uuid: str) -> ComputeNode:
    return ComputeNode(uuid, host, host, "QEMU", 1, 4, 4096, 40)


@pytest.fixture
def mapped(api: Database) -> Database:
    """Two cells; "host1" of "cell1" has node "n1", and "old" was mapped by a release that recorded no nodes."""
    for number in (1, 2):
        cells.save_cell(api, CellMapping(f"cell{number}", f"name{number}", "none:///", f"sqlite:///{number}"))
    cells.map_host(api, "host1", "cell1", "n1")
    cells.map_host(api, "old", "cell1")
    return api


def test_a_host_is_recorded_with_its_node_once(mapped: Database) -> None:
    cells.map_host(mapped, "host1", "cell1", "n1")
    assert cells.find_host(mapped, "host1") == HostMapping("host1", "cell1", "n1")
    assert cells.hosts(mapped) == {"host1": "cell1", "old": "cell1"}


def test_the_node_of_an_older_mapping_is_recorded_later(mapped: Database) -> None:
    cells.map_host(mapped, "old", "cell1", "n2")
    assert cells.find_host(mapped, "old") == HostMapping("old", "cell1", "n2")


def test_a_conductor_of_an_earlier_release_changes_no_node(mapped: Database) -> None:
    cells.map_host(mapped, "host1", "cell1")
    assert cells.find_host(mapped, "host1") == HostMapping("host1", "cell1", "n1")


@pytest.mark.parametrize(
    ("host", "cell", "uuid", "why"),
    [
        ("host1", "cell2", "n2", "in another cell"),
        ("host2", "cell2", "n1", "host1's"),
        ("old", "cell1", "n1", "host1's"),
        ("host1", "cell1", "n2", "is known as node n1"),
        ("host2", "gone", "n2", "was deleted"),
    ],
)
def test_what_is_another_hosts_is_refused(mapped: Database, host: str, cell: str, uuid: str, why: str) -> None:
    before = cells.host_mappings(mapped)
    with pytest.raises(errors.Conflict, match=why):
        cells.map_host(mapped, host, cell, uuid)
    assert cells.host_mappings(mapped) == before


def test_a_node_is_free_again_when_its_host_is_removed(mapped: Database) -> None:
    cells.unmap_host(mapped, "host1")
    cells.map_host(mapped, "host2", "cell2", "n1")


def test_the_mappings_about_a_host_are_its_own_and_those_of_its_nodes(mapped: Database) -> None:
    found = cells.host_mappings(mapped, hosts=["rogue"], nodes={"n1"})
    assert found == [HostMapping("host1", "cell1", "n1")]


@pytest.mark.parametrize(
    ("host", "cell", "uuid", "is_own"),
    [
        ("host1", "cell1", "n1", True),
        ("host1", "cell1", "n2", False),
        ("host1", "cell2", "n1", False),
        ("rogue", "cell2", "n1", False),
        ("old", "cell1", "n2", True),
        ("old", "cell1", "n1", False),
        ("new", "cell2", "n2", True),
    ],
)
def test_a_host_is_believed_by_what_is_recorded_of_it(host: str, cell: str, uuid: str, is_own: bool) -> None:
    own = OwnNodes([HostMapping("host1", "cell1", "n1"), HostMapping("old", "cell1")])
    assert own.has(cell, node(host, uuid)) is is_own


NAMES, UUIDS, CELLS = st.sampled_from("abcd"), st.sampled_from("1234"), st.sampled_from(["cell1", "cell2"])


@given(
    st.lists(st.tuples(NAMES, CELLS, st.none() | UUIDS), unique_by=lambda one: one[0]),
    st.lists(st.tuples(CELLS, NAMES, UUIDS)),
)
def test_no_two_hosts_share_a_node(
    recorded: list[tuple[str, str, str | None]], reported: list[tuple[str, str, str]]
) -> None:
    own = OwnNodes(HostMapping(*each) for each in recorded)
    found = own.among(reported, lambda one: (one[0], node(one[1], one[2])))
    assert len({uuid for _cell, _host, uuid in found}) == len(found)
    places = {host: (cell, uuid) for host, cell, uuid in recorded}
    for cell, host, uuid in found:
        assert places.get(host, (cell, uuid)) in ((cell, uuid), (cell, None))
