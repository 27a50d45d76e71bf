"""Which hosts each weigher favours, and how weights add up."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oslo_config.cfg import ConfigOpts

from causeway.clients.placement import Capacity
from causeway.scheduler import weighers
from causeway.scheduler.filters import Request
from causeway.scheduler.host_state import HostState
from causeway.scheduler.request import Destination, RequestedGroup, RequestSpec
from causeway.scheduler.weighers import AVAILABLE, HostWeigher, enabled_weighers, normalise, weigh

MakeHost = Callable[..., HostState]
MakeSpec = Callable[..., RequestSpec]

NUMBERS = st.floats(min_value=-1e15, max_value=1e15)


@given(st.lists(NUMBERS, min_size=1))
def test_normalised_weights_are_between_0_and_1(raw: list[float]) -> None:
    weights = normalise(raw)
    assert all(0.0 <= weight <= 1.0 for weight in weights)
    if len(set(raw)) == 1:
        assert set(weights) == {0.0}
    else:
        assert min(weights) == 0.0
        assert max(weights) == 1.0


@given(st.lists(NUMBERS, min_size=2))
def test_normalising_keeps_the_order(raw: list[float]) -> None:
    weights = normalise(raw)
    for i, first in enumerate(raw):
        for j, second in enumerate(raw):
            if first < second:
                assert weights[i] <= weights[j]


def test_no_weights_normalise_to_none() -> None:
    assert normalise([]) == []


def best(conf: ConfigOpts, name: str, hosts: list[HostState], request: Request) -> str:
    return weigh([AVAILABLE[name](conf)], hosts, request)[0].host.host


@pytest.mark.parametrize(
    ("name", "better", "worse"),
    [
        ("RAMWeigher", {"node": {"memory_mb_used": 0}}, {"node": {"memory_mb_used": 1024}}),
        ("CPUWeigher", {"node": {"vcpus_used": 0}}, {"node": {"vcpus_used": 1}}),
        ("DiskWeigher", {"node": {"local_gb_used": 0}}, {"node": {"local_gb_used": 10}}),
        ("CPUWeigher", {"capacity": {"VCPU": Capacity(9, 0)}}, {"capacity": {"VCPU": Capacity(9, 1)}}),
        ("IoOpsWeigher", {"record": {"num_io_ops": 0}}, {"record": {"num_io_ops": 1}}),
        ("BuildFailureWeigher", {"record": {"failed_builds": 0}}, {"record": {"failed_builds": 1}}),
        ("HypervisorVersionWeigher", {"node": {"hypervisor_version": 9}}, {"node": {"hypervisor_version": 8}}),
    ],
)
def test_each_weigher_prefers_its_better_host(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, name: str, better: dict[str, object], worse: object
) -> None:
    hosts = [make_host("worse", **worse), make_host("better", **better)]  # type: ignore[arg-type]
    assert best(conf, name, hosts, Request(make_spec())) == "better"


def test_an_option_stacks_servers(conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec) -> None:
    conf.set_override("num_instances_weight_multiplier", 1.0, group="filter_scheduler")
    hosts = [make_host("empty"), make_host("busy", node={"running_vms": 3})]
    assert best(conf, "NumInstancesWeigher", hosts, Request(make_spec())) == "busy"


@pytest.mark.parametrize(("multiplier", "favoured"), [(1000000.0, "here"), (-1.0, "there")])
def test_a_move_prefers_its_cell_or_drains_it(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, multiplier: float, favoured: str
) -> None:
    conf.set_override("cross_cell_move_weight_multiplier", multiplier, group="filter_scheduler")
    hosts = [make_host("there", cell="cell2"), make_host("here", cell="cell1")]
    spec = make_spec(requested_destination=Destination(cell="uuid-cell1", allow_cross_cell_move=True))
    assert best(conf, "CrossCellWeigher", hosts, Request(spec)) == favoured


def test_a_move_prefers_hosts_that_share_the_storage_of_its_disks(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec
) -> None:
    shared = {"capabilities": {"storage": "rbd:one/vms"}}
    hosts = [make_host("apart"), make_host("elsewhere", node={"capabilities": {"storage": "rbd:two/vms"}})]
    hosts.append(make_host("shared", node=shared))
    name, of_disks = "SharedStorageWeigher", make_spec(source_storage="rbd:one/vms")
    assert best(conf, name, hosts, Request(of_disks)) == "shared"
    weigher = AVAILABLE[name](conf)
    assert not weigher.concerns(Request(make_spec()))
    assert not weigher.concerns(Request(make_spec(source_storage="rbd:one/vms", is_volume_backed=True)))


@pytest.mark.parametrize("destination", [None, Destination(cell="uuid-cell1"), Destination(allow_cross_cell_move=True)])
def test_no_opinion_on_cells_unless_a_move_may_cross_them(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, destination: Destination | None
) -> None:
    weigher = AVAILABLE["CrossCellWeigher"](conf)
    request = Request(make_spec(requested_destination=destination))
    assert [weigher.weigh(make_host(cell=cell), request) for cell in ("cell1", "cell2")] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("policy", "name", "favoured"),
    [
        ("soft-affinity", "ServerGroupSoftAffinityWeigher", "two"),
        ("soft-anti-affinity", "ServerGroupSoftAntiAffinityWeigher", "none"),
    ],
)
def test_soft_groups_favour_hosts_by_their_members(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, policy: str, name: str, favoured: str
) -> None:
    spec = make_spec(server_group=RequestedGroup("group", policy))
    hosts = [make_host("one"), make_host("two"), make_host("none")]
    request = Request(spec, group_hosts={"one": 1, "two": 2})
    assert best(conf, name, hosts, request) == favoured
    other = make_spec(server_group=RequestedGroup("group", "affinity"))
    assert AVAILABLE[name](conf).weigh(hosts[0], Request(other, group_hosts={"one": 1})) == 0


def test_weights_are_multiplied_and_summed(conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec) -> None:
    conf.set_override("ram_weight_multiplier", 3.0, group="filter_scheduler")
    both = [AVAILABLE["RAMWeigher"](conf), AVAILABLE["CPUWeigher"](conf)]
    hosts = [make_host("memory", node={"vcpus_used": 4}), make_host("cpus", node={"memory_mb_used": 4096})]
    first, second = weigh(both, hosts, Request(make_spec()))
    assert (first.host.host, first.weights, first.total) == ("memory", {"RAMWeigher": 3.0, "CPUWeigher": 0.0}, 3.0)
    assert (second.host.host, second.total) == ("cpus", 1.0)


def test_an_aggregate_overrides_a_multiplier_with_its_smallest_number(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec
) -> None:
    weigher = AVAILABLE["RAMWeigher"](conf)
    key = "ram_weight_multiplier"
    assert weigher.multiplier(make_host()) == 1.0
    assert weigher.multiplier(make_host(metadata=[{key: "5.0"}, {key: "2"}])) == 2.0
    assert weigher.multiplier(make_host(metadata={key: "much"})) == 1.0
    hosts = [make_host("free", metadata={key: "-1"}), make_host("full", node={"memory_mb_used": 4096})]
    assert best(conf, "RAMWeigher", hosts, Request(make_spec())) == "full"


def test_equal_hosts_weigh_nothing(conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec) -> None:
    weighed = weigh(enabled_weighers(conf), [make_host("a"), make_host("b")], Request(make_spec()))
    assert [one.total for one in weighed] == [0.0, 0.0]


class Unreadable:
    """A request that fails the test of whoever looks at it."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"the weigher reads the request: {name}")


@pytest.mark.parametrize("name", [name for name, weigher in AVAILABLE.items() if weigher.of_host_alone])
def test_weighers_of_the_host_alone_do_not_read_the_request(conf: ConfigOpts, make_host: MakeHost, name: str) -> None:
    request: Any = Unreadable()
    AVAILABLE[name](conf).weigh(make_host(), request)


@pytest.mark.parametrize("name", [name for name, weigher in AVAILABLE.items() if not weigher.of_host_alone])
def test_other_weighers_read_the_request(conf: ConfigOpts, make_host: MakeHost, name: str) -> None:
    request: Any = Unreadable()
    with pytest.raises(AssertionError, match="reads the request"):
        AVAILABLE[name](conf).weigh(make_host(), request)


def test_a_weigher_that_does_not_say_whether_the_host_decides_alone_is_refused() -> None:
    with pytest.raises(TypeError, match="of_host_alone"):

        class Forgetful(HostWeigher):  # type: ignore[call-arg]
            option = "ram_weight_multiplier"

            def weigh(self, host: HostState, request: Request) -> float:  # noqa: ARG002
                return 0.0


def test_every_weigher_is_available_and_has_its_option(conf: ConfigOpts) -> None:
    named = {file.stem for file in Path(weighers.__file__).parent.glob("*.py")} - {"__init__", "base"}
    written = [
        member.__name__
        for name in sorted(named)
        for member in vars(importlib.import_module(f"{weighers.__name__}.{name}")).values()
        if isinstance(member, type) and issubclass(member, HostWeigher) and member is not HostWeigher
    ]
    assert sorted(written) == sorted(AVAILABLE)
    for weigher in AVAILABLE.values():
        assert weigher.option.endswith("_weight_multiplier") and weigher.option in conf.filter_scheduler, weigher


def test_a_weigher_that_does_not_exist_is_said_at_the_start(conf: ConfigOpts) -> None:
    conf.set_override("weight_classes", ["PopularityWeigher"], group="filter_scheduler")
    with pytest.raises(ValueError, match="PopularityWeigher"):
        enabled_weighers(conf)
