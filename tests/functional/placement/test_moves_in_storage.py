"""Moves inside of storage that hosts share, on the real Placement: the disk is claimed once, also in a full pool."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oslo_config.cfg import ConfigOpts

from causeway.clients.placement import Inventory, PlacementClient
from causeway.model.flavor import Flavor
from causeway.model.host import STORAGE
from causeway.scheduler import Scheduler
from causeway.scheduler.request import MoveClaim, RequestSpec, SchedulingResult
from tests.functional.placement.test_scheduler import Cloud, MakeHost, boot, conf, new_uuid, spec_of

__all__ = ["conf"]

FLAVOR = Flavor("1", "small", 1, 128, root_gb=3)
POOL = "rbd:one/vms"
IN_POOL, APART = [f"in-pool{number}" for number in range(3)], [f"apart{number}" for number in range(3)]


class PoolCloud(Cloud):
    """Some hosts share a pool, and others, which have much more room, have disks of their own."""

    pool: str

    def fill(self, gib: int) -> None:
        self.client.set_inventory(self.pool, {"DISK_GB": Inventory(gib)})


@pytest.fixture
def cloud(client: PlacementClient, make_host: MakeHost) -> PoolCloud:
    cloud = PoolCloud(client, make_host)
    cloud.pool, shared = make_host(), new_uuid()
    cloud.fill(1000)
    client.change_traits(cloud.pool, add={"MISC_SHARES_VIA_AGGREGATE"})
    client.add_aggregate(cloud.pool, shared)
    for host in IN_POOL:
        node = cloud.add_host(host, "cell1")
        client.set_inventory(node, {"VCPU": Inventory(8), "MEMORY_MB": Inventory(4096)})
        client.add_aggregate(node, shared)
        cloud.records[host].node.capabilities[STORAGE] = POOL
    for host in APART:
        cloud.add_host(host, "cell1", memory_mb=65536)
    return cloud


@pytest.fixture
def spec(conf: ConfigOpts, client: PlacementClient, cloud: PoolCloud) -> RequestSpec:
    """Of a server that is in the pool, on a host that it must leave."""
    spec = spec_of(FLAVOR, ignore_hosts=APART)
    source = boot(Scheduler(conf, client, cloud), spec).selected.host
    return replace(spec, ignore_hosts=[source], source_storage=POOL, source_disk_gb=FLAVOR.root_gb)


def moved(conf: ConfigOpts, client: PlacementClient, cloud: PoolCloud, spec: RequestSpec) -> SchedulingResult:
    (source,) = spec.ignore_hosts
    move = MoveClaim(new_uuid(), cloud.node(source))
    (result,) = Scheduler(conf, client, cloud).select_destinations(None, spec, [spec.instance_uuid], move=move)
    held, left = (client.get_allocations(each).allocations for each in (spec.instance_uuid, move.migration_uuid))
    assert left == {move.source_node: {"VCPU": 1, "MEMORY_MB": 128}}
    node = result.selected.node_uuid
    assert held == {node: {"VCPU": 1, "MEMORY_MB": 128}, cloud.pool: {"DISK_GB": spec.flavor.root_gb}}
    return result


@pytest.mark.parametrize("full", [False, True], ids=["with room", "full"])
def test_a_move_stays_in_its_pool_and_so_do_its_alternates(
    conf: ConfigOpts, client: PlacementClient, cloud: PoolCloud, spec: RequestSpec, full: bool
) -> None:
    if full:
        cloud.fill(FLAVOR.root_gb)
    result = moved(conf, client, cloud, spec)
    chosen = {result.selected.host, *(one.host for one in result.alternates)}
    # Their claim could not know what the migration has left with the server.
    assert chosen == set(IN_POOL) - set(spec.ignore_hosts)


def test_a_server_that_grows_leaves_a_pool_that_has_no_room_for_that(
    conf: ConfigOpts, client: PlacementClient, cloud: PoolCloud, spec: RequestSpec
) -> None:
    cloud.fill(FLAVOR.root_gb + 1)
    move = MoveClaim(new_uuid(), cloud.node(spec.ignore_hosts[0]))
    larger = replace(spec, flavor=replace(FLAVOR, root_gb=FLAVOR.root_gb + 2))
    scheduler = Scheduler(conf, client, cloud)
    (result,) = scheduler.select_destinations(None, larger, [spec.instance_uuid], move=move)
    assert result.selected.host in APART
    # The disk that it leaves is its migration's, and is returned with the rest.
    assert client.get_allocations(move.migration_uuid).allocations[cloud.pool] == {"DISK_GB": FLAVOR.root_gb}
    client.return_allocations(spec.instance_uuid, move.migration_uuid, disk_gb=FLAVOR.root_gb)
    assert client.get_allocations(spec.instance_uuid).allocations[cloud.pool] == {"DISK_GB": FLAVOR.root_gb}
