"""The scheduler on the real Placement: two cells, two hosts in each."""

from __future__ import annotations

import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from oslo_config.cfg import ConfigOpts

from causeway import errors
from causeway.clients.placement import PlacementClient
from causeway.conf import scheduler as options
from causeway.embedded.placement.local import LocalPlacement
from causeway.model.flavor import Flavor
from causeway.model.host import Aggregate, ComputeNode, Service
from causeway.scheduler import (
    Destination,
    HostRecord,
    MoveClaim,
    RequestedGroup,
    RequestSpec,
    Scheduler,
    SchedulingResult,
)

GEN1 = Flavor("1", "gen1.small", 1, 128, 1, extra_specs={"aggregate_instance_extra_specs:gen": "1"})
GEN2 = Flavor("2", "gen2.small", 2, 192, 2, extra_specs={"aggregate_instance_extra_specs:gen": "2"})
ANY = Flavor("3", "any.small", 1, 128, 1)

MakeHost = Callable[..., str]


def new_uuid() -> str:
    return str(uuid.uuid4())


def now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


class Cloud:
    """What the databases would say: hosts of two cells, aggregates, where servers are."""

    def __init__(self, client: PlacementClient, make_host: MakeHost) -> None:
        self.client = client
        self._make_host = make_host
        self.records: dict[str, HostRecord] = {}
        self._aggregates: list[Aggregate] = []
        self.groups: dict[str, dict[str, set[str]]] = {}
        self.servers: dict[str, str] = {}
        self.looks = 0

    def add_host(self, host: str, cell: str, **inventory: int) -> str:
        node = self._make_host(**inventory)
        self.records[host] = HostRecord(
            cell_uuid=f"uuid-{cell}",
            cell_name=cell,
            node=ComputeNode(node, host, host, "QEMU", 8002000, 8, 4096, 100),
            service=Service(new_uuid(), host, "nova-compute", last_seen_up=now()),
        )
        return node

    def add_aggregate(self, hosts: list[str], metadata: dict[str, str]) -> Aggregate:
        aggregate = Aggregate(new_uuid(), "aggregate", hosts, metadata)
        for host in hosts:
            self.client.add_aggregate(self.node(host), aggregate.uuid)
        self._aggregates.append(aggregate)
        return aggregate

    def node(self, host: str) -> str:
        return self.records[host].node.uuid

    # A HostSource

    def silent_cells(self) -> list[str]:
        return []

    def host_states(self, provider_uuids: set[str] | None) -> list[HostRecord]:
        self.looks += 1
        return [r for r in self.records.values() if provider_uuids is None or r.node.uuid in provider_uuids]

    def aggregates(self) -> list[Aggregate]:
        return list(self._aggregates)

    def group_members(self, group_uuid: str) -> set[str]:
        known = self.groups.get(group_uuid, {}).values()
        return MEMBERS[group_uuid].union(*known)

    def group_hosts(self, members: set[str]) -> dict[str, set[str]]:
        by_host = [pair for group in self.groups.values() for pair in group.items()]
        return {host: uuids & members for host, uuids in by_host if uuids & members}

    def instance_hosts(self, instance_uuids: set[str]) -> dict[str, str]:
        return {uuid: host for uuid, host in self.servers.items() if uuid in instance_uuids}


@pytest.fixture
def cloud(client: PlacementClient, make_host: MakeHost) -> Cloud:
    cloud = Cloud(client, make_host)
    for cell in ("cell1", "cell2"):
        for number in (1, 2):
            cloud.add_host(f"{cell}-host{number}", cell)
    cloud.add_aggregate(["cell1-host1", "cell1-host2"], {"gen": "1"})
    cloud.add_aggregate(["cell2-host1", "cell2-host2"], {"gen": "2"})
    return cloud


@pytest.fixture(params=["asks for all", "remembers"])
def conf(request: pytest.FixtureRequest) -> Iterator[ConfigOpts]:
    """As in a small cloud, and as in a large one."""
    conf = ConfigOpts()
    for group, group_options in options.OPTS.items():
        conf.register_opts(group_options, group=group)
    conf([], default_config_files=[], default_config_dirs=[])
    if request.param == "remembers":
        conf.set_override("ask_for_all_up_to", 0, group="scheduler")
    yield conf
    conf.clear()


@pytest.fixture
def scheduler(conf: ConfigOpts, client: PlacementClient, cloud: Cloud) -> Scheduler:
    return Scheduler(conf, client, cloud)


# group -> the servers that were asked for as its members
MEMBERS: dict[str, set[str]] = defaultdict(set)


def spec_of(flavor: Flavor, **fields: Any) -> RequestSpec:
    given: dict[str, Any] = {"instance_uuid": new_uuid(), "project_id": "p", "user_id": "u", "flavor": flavor}
    spec = RequestSpec(**given | fields)
    if spec.server_group is not None:
        MEMBERS[spec.server_group.uuid].add(spec.instance_uuid)
    return spec


def boot(scheduler: Scheduler, spec: RequestSpec) -> SchedulingResult:
    return scheduler.select_destinations(None, spec, [spec.instance_uuid])[0]


def across_cells(cell: str = "cell1") -> Destination:
    return Destination(cell=f"uuid-{cell}", allow_cross_cell_move=True)


def test_a_boot_costs_two_calls_and_holds_what_was_selected(
    scheduler: Scheduler, client: PlacementClient, cloud: Cloud
) -> None:
    # In a large cloud the first one looks at all hosts once.
    boot(scheduler, spec_of(GEN1))
    spec = spec_of(GEN1)
    client.reset_calls()
    result = boot(scheduler, spec)
    assert client.calls == {"GET /allocation_candidates": 1, "PUT /allocations/{consumer}": 1}
    selected = result.selected
    assert selected.cell_name == "cell1"
    assert client.get_allocations(spec.instance_uuid).allocations == {
        cloud.node(selected.host): {"VCPU": 1, "MEMORY_MB": 128, "DISK_GB": 1}
    }
    # The alternate is the cell's other host, never one of the other cell.
    assert {selected.host, *(one.host for one in result.alternates)} == {"cell1-host1", "cell1-host2"}


def test_a_cross_cell_move_costs_two_calls(scheduler: Scheduler, client: PlacementClient) -> None:
    spec, migration = spec_of(GEN1), new_uuid()
    source = boot(scheduler, spec).selected
    client.reset_calls()
    again = spec_of(GEN2, instance_uuid=spec.instance_uuid, requested_destination=across_cells())
    claim = MoveClaim(migration, source.node_uuid)
    target = scheduler.select_destinations(None, again, [spec.instance_uuid], move=claim)[0].selected
    assert client.calls == {"GET /allocation_candidates": 1, "POST /allocations": 1}
    assert target.cell_name == "cell2"
    assert client.get_allocations(migration).allocations.keys() == {source.node_uuid}
    assert client.get_allocations(spec.instance_uuid).allocations.keys() == {target.node_uuid}


def test_hosts_are_remembered_from_request_to_request(scheduler: Scheduler, cloud: Cloud) -> None:
    for _ in range(3):
        boot(scheduler, spec_of(ANY))
    assert cloud.looks == 1


def test_without_permission_a_move_stays_in_its_cell(scheduler: Scheduler) -> None:
    stays = Destination(cell="uuid-cell1")
    assert boot(scheduler, spec_of(ANY, requested_destination=stays)).selected.cell_name == "cell1"
    with pytest.raises(errors.NoValidHost) as none:
        boot(scheduler, spec_of(GEN2, requested_destination=stays))
    assert (
        none.value.message
        == ("No valid host was found. 4 hosts: 2 lack the aggregate property gen=2, 2 are in another cell.")
        or "2 are in another cell, 2 lack the aggregate property gen=2" in none.value.message
    )
    assert "host1" not in none.value.message
    assert "cell2-host1" in none.value.details


@pytest.mark.parametrize(("multiplier", "cell"), [(None, "cell1"), (-1000.0, "cell2")])
def test_a_move_prefers_its_cell_or_drains_it(
    conf: ConfigOpts, client: PlacementClient, cloud: Cloud, multiplier: float | None, cell: str
) -> None:
    if multiplier is not None:
        conf.set_override("cross_cell_move_weight_multiplier", multiplier, group="filter_scheduler")
    scheduler = Scheduler(conf, client, cloud)
    assert boot(scheduler, spec_of(ANY, requested_destination=across_cells())).selected.cell_name == cell


def test_the_source_host_can_be_left_out(scheduler: Scheduler) -> None:
    spec = spec_of(GEN1, ignore_hosts=["cell1-host1"])
    result = boot(scheduler, spec)
    assert (result.selected.host, result.alternates) == ("cell1-host2", [])


def test_a_host_can_be_asked_for(scheduler: Scheduler) -> None:
    assert (
        boot(scheduler, spec_of(ANY, requested_destination=Destination("cell2-host2"))).selected.host == "cell2-host2"
    )
    with pytest.raises(errors.NoValidHost, match="No such host - host: nowhere"):
        boot(scheduler, spec_of(ANY, requested_destination=Destination("nowhere")))
    with pytest.raises(errors.NoValidHost, match="lacks the aggregate property gen=2"):
        boot(scheduler, spec_of(GEN2, requested_destination=Destination("cell1-host1")))


def test_a_forced_host_passes_all_filters(scheduler: Scheduler) -> None:
    assert boot(scheduler, spec_of(GEN2, force_hosts=["cell1-host1"])).selected.host == "cell1-host1"


def test_a_flavor_too_large_for_every_host_is_refused_with_amounts(scheduler: Scheduler) -> None:
    with pytest.raises(errors.NoValidHost) as none:
        boot(scheduler, spec_of(Flavor("4", "huge", 1, 100_000, 1)))
    assert none.value.message == (
        "No valid host was found. 4 hosts: 4 are full on MEMORY_MB (needs 100000, 4096 free)."
    )


def test_a_resource_that_nobody_has_is_refused(scheduler: Scheduler, cloud: Cloud) -> None:
    cloud.add_host("gpu", "cell1")
    with pytest.raises(errors.NoValidHost, match="have no VGPU"):
        boot(scheduler, spec_of(Flavor("5", "gpu", 1, 128, 1, extra_specs={"resources:VGPU": "1"})))


def test_required_and_forbidden_traits_decide(scheduler: Scheduler, client: PlacementClient, cloud: Cloud) -> None:
    client.change_traits(cloud.node("cell1-host1"), add={"CUSTOM_FAST"})
    required = Flavor("6", "fast", 1, 128, 1, extra_specs={"trait:CUSTOM_FAST": "required"})
    forbidden = Flavor("7", "slow", 1, 128, 1, extra_specs={"trait:CUSTOM_FAST": "forbidden"})
    assert boot(scheduler, spec_of(required)).selected.host == "cell1-host1"
    assert boot(scheduler, spec_of(forbidden)).selected.host != "cell1-host1"
    only_there = Destination("cell1-host2")
    with pytest.raises(errors.NoValidHost, match="lacks the trait CUSTOM_FAST"):
        boot(scheduler, spec_of(required, force_hosts=["cell1-host2"]))
    verdicts = scheduler.explain(None, spec_of(required, requested_destination=only_there)).hosts
    reasons = {one.host: one.refusal.one for one in verdicts if one.refusal is not None}
    assert reasons["cell1-host2"] == "lacks the trait CUSTOM_FAST"
    assert reasons["cell2-host1"] == "is not the host that was asked for"


def test_a_disabled_host_gets_nothing(scheduler: Scheduler, client: PlacementClient, cloud: Cloud) -> None:
    for host in ("cell1-host1", "cell1-host2"):
        client.change_traits(cloud.node(host), add={"COMPUTE_STATUS_DISABLED"})
    with pytest.raises(errors.NoValidHost, match="2 are disabled"):
        boot(scheduler, spec_of(GEN1))


def test_a_server_goes_to_the_zone_that_it_wants(scheduler: Scheduler, cloud: Cloud) -> None:
    cloud.add_aggregate(["cell1-host1"], {"availability_zone": "zone1"})
    in_zone = boot(scheduler, spec_of(ANY, availability_zone="zone1")).selected
    assert (in_zone.host, in_zone.availability_zone) == ("cell1-host1", "zone1")
    outside = boot(scheduler, spec_of(ANY, availability_zone="nova")).selected
    assert outside.host != "cell1-host1"
    assert outside.availability_zone == "nova"
    with pytest.raises(errors.NoValidHost, match="are not in availability zone zone1"):
        boot(scheduler, spec_of(GEN2, availability_zone="zone1"))
    with pytest.raises(errors.NoValidHost, match="No host is in availability zone zone9"):
        boot(scheduler, spec_of(ANY, availability_zone="zone9"))


def test_a_zone_that_was_made_a_moment_ago_is_found(scheduler: Scheduler, cloud: Cloud) -> None:
    """What is remembered says that there is no such zone: that is looked up again before it is said."""
    boot(scheduler, spec_of(ANY))
    cloud.add_aggregate(["cell2-host1"], {"availability_zone": "new"})
    assert boot(scheduler, spec_of(ANY, availability_zone="new")).selected.host == "cell2-host1"


def test_a_host_that_is_down_is_passed_over(scheduler: Scheduler, cloud: Cloud) -> None:
    cloud.records["cell1-host1"].service.last_seen_up = now() - timedelta(seconds=61)
    assert boot(scheduler, spec_of(GEN1)).selected.host == "cell1-host2"
    with pytest.raises(errors.NoValidHost, match="1 is down"):
        boot(scheduler, spec_of(GEN1, ignore_hosts=["cell1-host2"]))


def test_a_host_that_filled_up_is_passed_over(conf: ConfigOpts, placement: LocalPlacement, cloud: Cloud) -> None:
    """Somebody takes the last slot between the question and the claim."""

    class Raced(PlacementClient):
        raced = False

        def claim(self, consumer: str, allocations: Any, project_id: str, user_id: str, **options: Any) -> Any:
            if not self.raced:
                self.raced = True
                (node,) = allocations
                placement.client().claim(new_uuid(), {node: {"VCPU": 8}}, "p", "u")
            return super().claim(consumer, allocations, project_id, user_id, **options)

    raced = placement.client()
    raced.__class__ = Raced
    result = boot(Scheduler(conf, raced, cloud), spec_of(GEN1))
    verdicts = {one.host: one for one in result.explanation.hosts}
    lost = {"cell1-host1": "cell1-host2", "cell1-host2": "cell1-host1"}[result.selected.host]
    refusal = verdicts[lost].refusal
    assert refusal is not None
    assert refusal.one == "was full when it was claimed"
    assert result.alternates == []


def test_those_that_race_for_the_last_slots_get_one_each(
    conf: ConfigOpts, client: PlacementClient, make_host: MakeHost
) -> None:
    """Two hosts with one slot each, six requests: two get one, and say where."""
    cloud = Cloud(client, make_host)
    cloud.add_host("one", "cell1", vcpus=1)
    cloud.add_host("two", "cell1", vcpus=1)
    scheduler = Scheduler(conf, client, cloud)
    start = threading.Barrier(6)

    def race(_number: int) -> str | None:
        start.wait()
        try:
            return boot(scheduler, spec_of(ANY)).selected.host
        except errors.NoValidHost:
            return None

    with ThreadPoolExecutor(6, thread_name_prefix="race") as pool:
        hosts = list(pool.map(race, range(6)))
    assert sorted(host for host in hosts if host) == ["one", "two"]


def test_several_servers_get_hosts_or_none_does(scheduler: Scheduler, client: PlacementClient) -> None:
    six = Flavor("8", "six", 6, 128, 1)
    servers = [new_uuid() for _ in range(4)]
    results = scheduler.select_destinations(None, spec_of(six, num_instances=4), servers)
    assert [result.instance_uuid for result in results] == servers
    assert len({result.selected.host for result in results}) == 4
    for server in servers:
        client.delete_allocations(server)
    five = [*servers, new_uuid()]
    with pytest.raises(errors.NoValidHost):
        scheduler.select_destinations(None, spec_of(six, num_instances=5), five)
    assert [client.get_allocations(server).allocations for server in five] == [{}] * 5


def test_members_of_an_anti_affinity_group_that_race_get_different_hosts(scheduler: Scheduler) -> None:
    """The databases do not show the first one's host yet when the second one asks."""
    group = RequestedGroup(new_uuid(), "anti-affinity")
    start = threading.Barrier(4)

    def race(_number: int) -> str:
        start.wait()
        return boot(scheduler, spec_of(ANY, server_group=group)).selected.host

    with ThreadPoolExecutor(4, thread_name_prefix="race") as pool:
        hosts = list(pool.map(race, range(4)))
    assert len(set(hosts)) == 4
    with pytest.raises(errors.NoValidHost, match="have members of the server's anti-affinity group already"):
        boot(scheduler, spec_of(ANY, server_group=group))


def test_an_affinity_group_stays_together(scheduler: Scheduler) -> None:
    group = RequestedGroup(new_uuid(), "affinity")
    first = boot(scheduler, spec_of(ANY, server_group=group)).selected.host
    assert boot(scheduler, spec_of(ANY, server_group=group)).selected.host == first


def test_the_only_member_of_an_affinity_group_may_move(scheduler: Scheduler, cloud: Cloud) -> None:
    spec = spec_of(GEN2, server_group=RequestedGroup(new_uuid(), "affinity"))
    assert spec.server_group is not None
    cloud.groups[spec.server_group.uuid] = {"cell1-host1": {spec.instance_uuid}}
    cloud.servers[spec.instance_uuid] = "cell1-host1"
    assert boot(scheduler, spec).selected.cell_name == "cell2"


def test_servers_that_are_to_be_kept_apart(conf: ConfigOpts, client: PlacementClient, cloud: Cloud) -> None:
    conf.set_override("enabled_filters", ["SameHostFilter", "DifferentHostFilter"], group="filter_scheduler")
    scheduler = Scheduler(conf, client, cloud)
    cloud.servers["other"] = "cell1-host2"
    assert boot(scheduler, spec_of(ANY, scheduler_hints={"same_host": ["other"]})).selected.host == "cell1-host2"
    apart = boot(scheduler, spec_of(ANY, scheduler_hints={"different_host": ["other"]}))
    assert "cell1-host2" not in {apart.selected.host, *(one.host for one in apart.alternates)}


def test_an_explanation_has_every_host_and_changes_nothing(
    scheduler: Scheduler, client: PlacementClient, cloud: Cloud
) -> None:
    client.claim(new_uuid(), {cloud.node("cell2-host2"): {"VCPU": 7}}, "p", "u")
    spec = spec_of(GEN2, requested_destination=across_cells())
    explanation = scheduler.explain(None, spec)
    verdicts = {one.host: one for one in explanation.hosts}
    assert verdicts.keys() == {"cell1-host1", "cell1-host2", "cell2-host1", "cell2-host2"}
    assert verdicts["cell2-host1"].selected
    assert verdicts["cell2-host1"].weights.keys() >= {"CPUWeigher", "CrossCellWeigher"}
    reasons = {one.host: one.refusal for one in explanation.hosts if one.refusal is not None}
    assert reasons["cell1-host1"].filter == "AggregateInstanceExtraSpecsFilter"
    assert reasons["cell1-host1"].values == {"wants": "2", "has": "1"}
    assert reasons["cell2-host2"].reason == "is full on VCPU (needs 2, 1 free)"
    assert client.get_allocations(spec.instance_uuid).is_empty
    assert "gen=2" in explanation.summary()


def test_answers_cross_rpc_as_json(scheduler: Scheduler) -> None:
    result = boot(scheduler, spec_of(GEN1))
    assert msgspec.json.decode(msgspec.json.encode(result), type=SchedulingResult) == result
    claim = MoveClaim("m", "node")
    assert msgspec.json.decode(msgspec.json.encode(claim), type=MoveClaim) == claim
