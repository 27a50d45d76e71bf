"""Many servers find hosts together: nobody gets what another one of them has, and who gets nothing learns why."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.clients.placement import Capacity
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology, NUMACell, NUMATopology
from causeway.scheduler.many import GroupPlaces, Lack, Mover
from causeway.scheduler.packing import alike, amount_missing
from causeway.scheduler.request import Destination
from tests.unit.scheduler.packing_hosts import group, host, movers, pack, spec


@settings(max_examples=200)
@given(
    capacities=st.lists(st.tuples(st.integers(0, 64), st.integers(0, 32)), min_size=1, max_size=6),
    sizes=st.lists(st.tuples(st.integers(1, 32), st.integers(1, 8)), min_size=1, max_size=4),
    wanted=st.lists(st.integers(0, 3), max_size=30),
)
def test_no_host_is_filled_over_its_capacity(
    capacities: list[tuple[int, int]], sizes: list[tuple[int, int]], wanted: list[int]
) -> None:
    hosts = [host(f"h{number}", memory, vcpus) for number, (memory, vcpus) in enumerate(capacities)]
    servers = [Mover(f"s{number}", of % len(sizes)) for number, of in enumerate(wanted)]
    packing = pack(hosts, [spec(*size) for size in sizes], servers)
    assert packing.places.keys() | packing.homeless.keys() == {mover.uuid for mover in servers}
    assert not packing.places.keys() & packing.homeless.keys()
    used: dict[str, Counter[str]] = {each.host: Counter() for each in hosts}
    for mover in servers:
        if mover.uuid in packing.places:
            memory, vcpus = sizes[mover.spec]
            used[packing.places[mover.uuid].host].update(memory=memory, vcpus=vcpus)
    for each in hosts:
        assert used[each.host]["memory"] <= each.capacity["MEMORY_MB"].capacity
        assert used[each.host]["vcpus"] <= each.capacity["VCPU"].capacity
    # Nobody is left who would still fit somewhere.
    for mover in servers:
        if mover.uuid in packing.homeless:
            memory, vcpus = sizes[mover.spec]
            for each in hosts:
                free = each.capacity["MEMORY_MB"].capacity - used[each.host]["memory"]
                cpus = each.capacity["VCPU"].capacity - used[each.host]["vcpus"]
                assert free < memory or cpus < vcpus


@settings(max_examples=100)
@given(members=st.integers(1, 8), hosts=st.integers(1, 5), most=st.integers(1, 3), there=st.integers(0, 4))
def test_anti_affinity_holds_for_all_of_them_together(members: int, hosts: int, most: int, there: int) -> None:
    known = group("anti-affinity", {"t0": [f"old{number}" for number in range(there)], "source": ["s00000"]}, most)
    servers = movers(members, host="source", group="group")
    packing = pack([host(f"t{number}", 1000) for number in range(hosts)], [spec(1)], servers, {"group": known})
    on = Counter(place.host for place in packing.places.values())
    assert all(count <= most for name, count in on.items() if name != "t0")
    assert on["t0"] <= max(0, most - there)
    assert len(packing.places) == min(members, most * (hosts - 1) + max(0, most - there))
    for homeless in packing.homeless.values():
        assert "members of the server's anti-affinity group already" in homeless.why
        assert homeless.filters[0] == "ServerGroupAntiAffinityFilter" and homeless.lack is None


@given(free=st.integers(0, 12), count=st.integers(0, 16), apart=st.integers(0, 4))
def test_a_pool_is_filled_once_by_all_hosts_that_share_it(free: int, count: int, apart: int) -> None:
    hosts = [host(name, 1000) for name in ("a", "b", "own")]
    for each, room in zip(hosts, (free, free, apart), strict=True):
        each.capacity["DISK_GB"] = Capacity(room, 0)
    packing = pack(hosts, [spec(1)], movers(count), pools={"a": "pool", "b": "pool"})
    on = Counter(place.host for place in packing.places.values())
    assert on["a"] + on["b"] <= free and on["own"] <= apart
    assert len(packing.places) == min(count, free + apart)


def test_servers_go_where_their_disks_are_before_they_go_elsewhere() -> None:
    shared = {"capabilities": {"storage": "rbd:one/vms"}}
    hosts = [host("apart", 100), host("shared", 2, node=shared), host("far", 100, cell="cell3", node=shared)]
    asked = spec(1, source_storage="rbd:one/vms")
    asked.requested_destination = Destination(cell="cell2", allow_cross_cell_move=True)
    packing = pack(hosts, [asked], movers(4))
    assert Counter(place.host for place in packing.places.values()) == {"shared": 2, "apart": 2}


@pytest.mark.parametrize(("growth", "count"), [(0, 5), (1, 3), (4, 0)])
def test_servers_whose_disks_are_there_need_room_only_for_what_those_grow_by(growth: int, count: int) -> None:
    """Of a full pool all can go that do not grow."""
    shared = {"capabilities": {"storage": "rbd:one/vms"}}
    hosts = [host("a", 100, node=shared), host("b", 100, node=shared)]
    for each in hosts:
        each.capacity["DISK_GB"] = Capacity(8, 5)
    asked = spec(1, source_storage="rbd:one/vms", source_disk_gb=1)
    asked.flavor.root_gb += growth
    packing = pack(hosts, [asked], movers(5), pools={"a": "pool", "b": "pool"})
    assert len(packing.places) == count
    assert all(homeless.lack == Lack("DISK_GB", "a", max(1, growth - 3)) for homeless in packing.homeless.values())
    if growth == 0:
        for each in hosts:
            # What is full, Placement does not offer.
            del each.capacity["DISK_GB"]
        assert len(pack(hosts, [asked], movers(5)).places) == 5


def test_largest_come_first_so_that_they_still_find_room() -> None:
    hosts = [host("a", 64), host("b", 64)]
    servers = [*movers(8, 0, "small"), *movers(1, 1, "large")]
    packing = pack(hosts, [spec(8), spec(64)], servers)
    assert not packing.homeless


def test_who_can_go_to_few_hosts_goes_there_though_others_are_larger() -> None:
    hosts = [host("plain", 64), host("special", 64, metadata={"gen": "2"})]
    bound = spec(16, extra_specs={"aggregate_instance_extra_specs:gen": "2"})
    packing = pack(hosts, [spec(32), bound], [*movers(2, 0, "large"), *movers(4, 1, "bound")])
    assert not packing.homeless
    assert {packing.places[f"bound{number:05}"].host for number in range(4)} == {"special"}


def test_what_was_used_before_counts() -> None:
    packing = pack([host("a", 64, used=60)], [spec(8)], movers(1))
    (homeless,) = packing.homeless.values()
    assert homeless.why == "1 host: 1 is full on MEMORY_MB (needs 8, 4 free)"
    assert homeless.lack is not None and (homeless.lack.host, homeless.lack.missing) == ("a", 4)


def test_the_words_are_those_of_explain() -> None:
    hosts = [
        host("gen1", 64, metadata={"gen": "1"}),
        host("off", 64, disabled=True),
        host("no-trait", 64, metadata={"gen": "2"}),
        host("full", 64, metadata={"gen": "2"}, used=64),
    ]
    wanted = spec(8, extra_specs={"aggregate_instance_extra_specs:gen": "2", "trait:CUSTOM_FAST": "required"})
    traits = {"node-gen1": {"CUSTOM_FAST"}, "node-full": {"CUSTOM_FAST"}}
    packing = pack(hosts, [wanted], movers(2), traits=traits)
    (why,) = {homeless.why for homeless in packing.homeless.values()}
    assert why == (
        "4 hosts: 1 lacks the aggregate property gen=2, 1 is disabled, 1 lacks the trait CUSTOM_FAST, 1 is full on MEMORY_MB"
        " (needs 8, 0 free)"
    )


def test_packing_says_what_all_servers_lack_together() -> None:
    packing = pack(
        [host("a", 100, used=40), host("b", 100)], [spec(64), spec(200)], [*movers(2), *movers(1, 1, "huge")]
    )
    # One of 64 fits on b; the other finds 60 on a, and the one of 200 what is left of either.
    (missing,) = packing.missing
    assert (missing.resource, missing.servers, missing.cells) == ("MEMORY_MB", 2, ["cell2"])
    assert missing.amount == (200 - 60) + (64 - 36)


@settings(max_examples=200)
@given(needs=st.lists(st.integers(1, 100), min_size=1, max_size=8), free=st.lists(st.integers(0, 100), max_size=8))
def test_the_amount_missing_is_never_less_than_what_is_short_in_sum(needs: list[int], free: list[int]) -> None:
    assert amount_missing(needs, free) >= max(0, sum(needs) - sum(free))
    assert amount_missing(needs, free) <= sum(needs)


def test_a_server_stays_in_its_cell_if_there_is_room() -> None:
    hosts = [host("near", 64, cell="cell1", used=32), host("far", 1000)]
    wanted = spec(16, requested_destination=Destination(cell="cell1", allow_cross_cell_move=True))
    packing = pack(hosts, [wanted], movers(3))
    assert Counter(place.host for place in packing.places.values()) == {"near": 2, "far": 1}


def test_a_server_is_not_sent_to_where_it_is() -> None:
    packing = pack([host("here", 64)], [spec(8)], movers(1, host="here"))
    assert packing.homeless["s00000"].why == "1 host: 1 is where the server is"


def test_an_affinity_group_goes_only_to_where_members_are() -> None:
    hosts = [host("a", 64), host("b", 64)]
    known = group("affinity", {"b": ["old"], "source": ["s00000"]})
    packing = pack(hosts, [spec(8)], movers(1, host="source", group="group"), {"group": known})
    assert packing.places["s00000"].host == "b"
    together = group("affinity", {"source": ["s00000", "s00001"]})
    packing = pack(hosts, [spec(8)], movers(2, host="source", group="group"), {"group": together})
    assert len(packing.homeless) == 2
    assert packing.homeless["s00000"].filters == ["ServerGroupAffinityFilter"]


def test_soft_groups_are_a_wish() -> None:
    hosts = [host("a", 32), host("b", 32)]
    apart: dict[str, GroupPlaces] = {"group": group("soft-anti-affinity", {"a": ["old"]})}
    packing = pack(hosts, [spec(8)], movers(5, group="group"), apart)
    assert Counter(place.host for place in packing.places.values()) == {"b": 3, "a": 2}
    close: dict[str, GroupPlaces] = {"group": group("soft-affinity", {"a": ["old"]})}
    packing = pack(hosts, [spec(8)], movers(5, group="group"), close)
    assert Counter(place.host for place in packing.places.values()) == {"a": 4, "b": 1}


def test_numa_cells_are_taken_by_those_before() -> None:
    topology = NUMATopology([NUMACell(number, [2 * number, 2 * number + 1], [], 32) for number in (0, 1)])
    asked = InstanceNUMATopology([InstanceNUMACell(0, [0], [], 24)])
    hosts = [host("a", 1000, node={"numa_topology": topology})]
    hosts[0].numa_topology = topology
    packing = pack(hosts, [spec(24, numa_topology=asked)], movers(3))
    assert len(packing.places) == 2
    (homeless,) = packing.homeless.values()
    assert homeless.filters == ["NUMATopologyFilter"] and homeless.lack is None
    assert hosts[0].numa_topology is topology and topology.cells[0].memory_usage == 0


def test_hints_see_where_the_others_of_the_plan_go() -> None:
    hosts = [host("a", 64), host("b", 64)]
    apart = spec(1, scheduler_hints={"different_host": ["s00000"]})
    servers = [*movers(1, 0), *movers(1, 1, "apart")]
    packing = pack(hosts, [spec(32), apart], servers, instance_hosts={"s00000": "source"})
    assert packing.places["s00000"].host != packing.places["apart00000"].host


def test_what_decides_nothing_makes_no_kind_of_its_own() -> None:
    specs = [spec(8), spec(8), spec(16)]
    specs[1].project_id, specs[1].user_id = "another", "somebody"
    found, numbers = alike(specs, by_project=False, by_image=False)
    assert numbers == [0, 0, 1] and len(found) == 2
    assert alike(specs, by_project=True, by_image=False)[1] == [0, 1, 2]


def test_packing_works_without_servers_and_without_hosts() -> None:
    assert pack([host("a", 64)], [], []).places == {}
    assert pack([], [spec(8)], movers(1)).homeless["s00000"].why == "there are no hosts"
