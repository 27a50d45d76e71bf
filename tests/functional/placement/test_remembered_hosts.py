"""A large cloud on the real Placement: hosts are chosen from memory as well as if all had been asked for."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from oslo_config.cfg import ConfigOpts

from causeway import errors
from causeway.clients.placement import Inventory, PlacementClient
from causeway.conf import scheduler as options
from causeway.embedded.placement.local import LocalPlacement
from causeway.model.flavor import Flavor
from causeway.model.host import FOLDERS_LACK, OTHER_OWNER
from causeway.scheduler import RequestedGroup, RequestSpec, Scheduler
from causeway.scheduler.many import Mover, PackRequest
from tests.functional.placement.test_scheduler import Cloud, across_cells, boot, now, spec_of

SMALL = Flavor("1", "small", 1, 128, 1)
GEN2 = Flavor("2", "gen2", 2, 512, 2, extra_specs={"aggregate_instance_extra_specs:gen": "2"})
FAST = Flavor("3", "fast", 1, 256, 1, extra_specs={"trait:CUSTOM_FAST": "required"})
LARGE = Flavor("4", "large", 6, 2048, 1)
FLAVORS = (SMALL, GEN2, FAST, LARGE)

MakeHost = Callable[..., str]


@pytest.fixture
def conf() -> Iterator[ConfigOpts]:
    conf = ConfigOpts()
    for group, group_options in options.OPTS.items():
        conf.register_opts(group_options, group=group)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("ask_for_all_up_to", 0, group="scheduler")
    # Nothing is looked up by itself while a test continues.
    conf.set_override("host_state_max_age", 1000.0, group="scheduler")
    yield conf
    conf.clear()


@pytest.fixture
def cloud(client: PlacementClient, make_host: MakeHost) -> Cloud:
    """Hosts that differ in whatever decides, the same in every run."""
    dice = random.Random(14)
    cloud = Cloud(client, make_host)
    for number in range(24):
        host = f"host{number}"
        cloud.add_host(
            host, f"cell{number % 3}", vcpus=dice.choice((4, 8, 16)), memory_mb=dice.choice((2048, 4096, 8192))
        )
        record = cloud.records[host]
        record.node.hypervisor_version = dice.choice((8002000, 9000000))
        if number % 8 == 5:
            record.service.disabled = True
        if number % 8 == 6:
            record.service.last_seen_up = now() - timedelta(hours=1)
        if number % 8 == 7:
            lack = FOLDERS_LACK if number % 16 == 7 else OTHER_OWNER
            record.node.capabilities |= {lack: "a reason"}
        if number % 2:
            client.change_traits(record.node.uuid, add={"CUSTOM_FAST"})
        client.claim(str(uuid.uuid4()), {record.node.uuid: {"VCPU": dice.randint(1, 3)}}, "p", "u")
    cloud.add_aggregate([f"host{number}" for number in range(0, 24, 3)], {"gen": "2"})
    cloud.add_aggregate([f"host{number}" for number in range(0, 24, 5)], {"gen": "2", "cpu_weight_multiplier": "3"})
    cloud.add_aggregate([f"host{number}" for number in range(4, 12)], {"availability_zone": "zone1"})
    return cloud


def requests() -> Iterator[RequestSpec]:
    dice = random.Random(6)
    for _ in range(24):
        fields: dict[str, Any] = {}
        if dice.random() < 0.4:
            fields["requested_destination"] = across_cells(f"cell{dice.randrange(3)}")
        if dice.random() < 0.3:
            fields["availability_zone"] = dice.choice(("zone1", "nova"))
        if dice.random() < 0.3:
            fields["ignore_hosts"] = [f"host{dice.randrange(24)}" for _ in range(3)]
        yield spec_of(dice.choice(FLAVORS), **fields)


@pytest.mark.parametrize("subset", [1, 4])
def test_the_choice_is_as_good_as_if_all_were_asked_for(
    conf: ConfigOpts, client: PlacementClient, cloud: Cloud, subset: int
) -> None:
    conf.set_override("host_subset_size", subset, group="filter_scheduler")
    scheduler = Scheduler(conf, client, cloud)
    for spec in requests():
        ranking = scheduler._search(spec).rank()
        fitting = {host.host: ranking.verdicts[host.node_uuid].total for host in ranking.fitting}
        if not fitting:
            with pytest.raises(errors.NoValidHost):
                boot(scheduler, spec)
            continue
        result = boot(scheduler, spec)
        enough = sorted(fitting.values(), reverse=True)[: min(subset, len(fitting))][-1]
        assert fitting[result.selected.host] >= enough - 1e-9
        (chosen,) = [one for one in result.explanation.hosts if one.selected]
        assert chosen.total == pytest.approx(fitting[result.selected.host])
        # The same words for as many hosts.
        assert result.explanation.summary().endswith(f"{len(fitting)} {'fits' if len(fitting) == 1 else 'fit'}")
        alternates = {one.host for one in result.alternates}
        assert alternates <= fitting.keys() and len(alternates) == min(2, len(_of_cell(ranking, result)))
        for one in result.alternates:
            assert one.allocation_request.allocations.keys() == {one.node_uuid}


def _of_cell(ranking: Any, result: Any) -> list[str]:
    chosen = result.selected
    return [h.host for h in ranking.fitting if h.cell_uuid == chosen.cell_uuid and h.node_uuid != chosen.node_uuid]


def test_a_decision_asks_about_one_host(conf: ConfigOpts, client: PlacementClient, cloud: Cloud) -> None:
    scheduler = Scheduler(conf, client, cloud)
    boot(scheduler, spec_of(SMALL))
    client.reset_calls()
    looks = cloud.looks
    boot(scheduler, spec_of(GEN2))
    assert client.calls == {"GET /allocation_candidates": 1, "PUT /allocations/{consumer}": 1}
    assert cloud.looks == looks


def test_the_last_free_place_of_a_full_cloud_is_found(
    conf: ConfigOpts, client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    """It became free after everything was looked at: a build and a drain find it all the same."""
    cloud = Cloud(client, make_host)
    for number in range(6):
        cloud.add_host(f"host{number}", "cell1", vcpus=1)
    scheduler = Scheduler(conf, client, cloud)
    specs = [spec_of(SMALL) for _ in cloud.records]
    hosts = {spec.instance_uuid: boot(scheduler, spec).selected.host for spec in specs}
    with pytest.raises(errors.NoValidHost):
        boot(scheduler, spec_of(SMALL))
    goes = specs[3].instance_uuid
    placement.client().delete_allocations(goes)
    packed = scheduler.pack(None, PackRequest([spec_of(SMALL)], [Mover("mover", 0)], list(cloud.records)))
    assert packed.places["mover"].host == hosts[goes]
    assert boot(scheduler, spec_of(SMALL)).selected.host == hosts[goes]
    with pytest.raises(errors.NoValidHost):
        boot(scheduler, spec_of(SMALL))


def test_a_place_beyond_the_first_that_placement_offers_is_found(
    conf: ConfigOpts, client: PlacementClient, make_host: MakeHost
) -> None:
    """Who asks for some of those that fit, and finds that none of these will do, asks for all."""
    conf.set_override("max_placement_results", 2, group="scheduler")
    conf.set_override("ask_for_all_up_to", 100, group="scheduler")
    cloud = Cloud(client, make_host)
    for number in range(5):
        cloud.add_host(f"host{number}", "cell1")
        cloud.records[f"host{number}"].service.disabled = number != 4
    assert boot(Scheduler(conf, client, cloud), spec_of(SMALL)).selected.host == "host4"


def test_what_others_took_is_seen_before_it_is_claimed(
    conf: ConfigOpts, client: PlacementClient, placement: LocalPlacement, cloud: Cloud
) -> None:
    scheduler, others = Scheduler(conf, client, cloud), placement.client()
    first = boot(scheduler, spec_of(SMALL)).selected
    best = scheduler._search(spec_of(SMALL)).rank().fitting[0]
    others.claim(str(uuid.uuid4()), {best.node_uuid: {"MEMORY_MB": 1500}}, "p", "u")
    others.change_traits(first.node_uuid, add={"COMPUTE_STATUS_DISABLED"})
    for _ in range(3):
        spec = spec_of(SMALL)
        ranking = scheduler._search(spec).rank()
        totals = {host.host: ranking.verdicts[host.node_uuid].total for host in ranking.fitting}
        assert totals[boot(scheduler, spec).selected.host] == pytest.approx(max(totals.values()))


def test_many_at_once_see_one_anothers_choices(conf: ConfigOpts, client: PlacementClient, make_host: MakeHost) -> None:
    """Hosts with one slot each, and as many requests: each gets one, and no claim is repeated."""
    cloud = Cloud(client, make_host)
    for number in range(12):
        cloud.add_host(f"host{number}", "cell1", vcpus=1)
    scheduler = Scheduler(conf, client, cloud)
    client.reset_calls()
    start = threading.Barrier(12)

    def race(_number: int) -> str:
        start.wait()
        return boot(scheduler, spec_of(SMALL)).selected.host

    with ThreadPoolExecutor(12, thread_name_prefix="race") as pool:
        hosts = list(pool.map(race, range(12)))
    assert sorted(hosts) == sorted(cloud.records)
    assert client.calls["PUT /allocations/{consumer}"] == 12


def test_a_group_is_kept_apart_and_together(conf: ConfigOpts, client: PlacementClient, cloud: Cloud) -> None:
    scheduler = Scheduler(conf, client, cloud)
    apart, together = RequestedGroup(str(uuid.uuid4()), "anti-affinity"), RequestedGroup(str(uuid.uuid4()), "affinity")
    assert len({boot(scheduler, spec_of(SMALL, server_group=apart)).selected.host for _ in range(6)}) == 6
    assert len({boot(scheduler, spec_of(SMALL, server_group=together)).selected.host for _ in range(3)}) == 1


def test_resources_below_a_node_are_asked_for(conf: ConfigOpts, client: PlacementClient, cloud: Cloud) -> None:
    """What a host has in providers below it is not known from memory."""
    below = str(uuid.uuid4())
    client.ensure_provider(below, f"host2-gpu-{below}", parent_uuid=cloud.node("host2"))
    try:
        client.set_inventory(below, {"VGPU": Inventory(1)})
        spec = spec_of(Flavor("5", "gpu", 1, 128, 1, extra_specs={"resources:VGPU": "1"}))
        assert boot(Scheduler(conf, client, cloud), spec).selected.host == "host2"
        assert client.get_allocations(spec.instance_uuid).allocations.keys() == {cloud.node("host2"), below}
    finally:
        client.delete_provider(below, cascade=True)


def test_hosts_with_shared_disk_have_their_chance(
    conf: ConfigOpts, client: PlacementClient, make_host: MakeHost
) -> None:
    cloud = Cloud(client, make_host)
    for number in range(2):
        cloud.add_host(f"host{number}", "cell1", vcpus=2 + number)
    # The better host has no disk of its own.
    node, storage, shared = cloud.node("host1"), make_host(), str(uuid.uuid4())
    client.set_inventory(node, {"VCPU": Inventory(64), "MEMORY_MB": Inventory(65536)})
    client.set_inventory(storage, {"DISK_GB": Inventory(1000)})
    client.change_traits(storage, add={"MISC_SHARES_VIA_AGGREGATE"})
    for provider in (node, storage):
        client.add_aggregate(provider, shared)
    spec = spec_of(SMALL)
    assert boot(Scheduler(conf, client, cloud), spec).selected.host == "host1"
    assert client.get_allocations(spec.instance_uuid).allocations.keys() == {node, storage}


def test_a_host_that_placement_does_not_offer_is_asked_about_once(
    conf: ConfigOpts, client: PlacementClient, make_host: MakeHost
) -> None:
    """It seems to have room, but gives no server more than one CPU."""
    cloud = Cloud(client, make_host)
    for number in range(3):
        cloud.add_host(f"host{number}", "cell1", vcpus=4)
    inventory = {"VCPU": Inventory(64, max_unit=1), "MEMORY_MB": Inventory(65536), "DISK_GB": Inventory(100)}
    client.set_inventory(cloud.node("host1"), inventory)
    scheduler = Scheduler(conf, client, cloud)
    two = Flavor("6", "two", 2, 128, 1)
    first = boot(scheduler, spec_of(two))
    assert first.selected.host != "host1"
    assert "1 did not fit when it was looked at" in first.explanation.summary()
    client.reset_calls()
    second = boot(scheduler, spec_of(two))
    assert client.calls["GET /allocation_candidates"] == 1
    assert second.explanation.summary() == "3 hosts: 1 did not fit when it was looked at, 2 fit"
    # It is the best for whom one is enough.
    assert boot(scheduler, spec_of(SMALL)).selected.host == "host1"


def test_a_claim_that_fails_releases_the_room(conf: ConfigOpts, client: PlacementClient, make_host: MakeHost) -> None:
    cloud = Cloud(client, make_host)
    cloud.add_host("only", "cell1", vcpus=1)
    scheduler = Scheduler(conf, client, cloud)

    def fails(*_anything: Any, **_options: Any) -> None:
        raise errors.ServiceFailed("Placement is unreachable")

    claim, client.claim = client.claim, fails  # type: ignore[method-assign,assignment]
    with pytest.raises(errors.ServiceFailed):
        boot(scheduler, spec_of(SMALL))
    client.claim = claim  # type: ignore[method-assign]
    assert boot(scheduler, spec_of(SMALL)).selected.host == "only"
