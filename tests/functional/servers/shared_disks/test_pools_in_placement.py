"""The storage that hosts share is in Placement once: as a provider that shares its disk with all of them, in every cell."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from causeway.clients.placement import Inventory, PlacementClient
from causeway.clients.placement.types import Provider
from causeway.compute.upkeep.shared_pool import SharedPool
from tests.functional.servers.shared_disks.shared_cloud import HOSTS, OPTIONS, SharedCloud

KIND = SharedCloud
CLOUD: dict[str, Any] = {"cells": 2, "hosts_per_cell": 2, "overrides": OPTIONS}
SHARES = "MISC_SHARES_VIA_AGGREGATE"
DISK = Inventory(100)


def pools(placement: PlacementClient) -> list[Provider]:
    return placement.list_providers(required=SHARES)


@pytest.fixture
def placement(cloud: SharedCloud) -> PlacementClient:
    return cloud.embedded.around.placement


@pytest.fixture
def node(placement: PlacementClient) -> Iterator[str]:
    """The provider of a host that reports nothing by itself."""
    made = str(uuid.uuid4())
    placement.ensure_provider(made, made)
    before = {pool.uuid for pool in pools(placement)}
    yield made
    placement.delete_provider(made)
    for pool in pools(placement):
        if pool.uuid not in before:
            placement.delete_provider(pool.uuid)


def test_hosts_have_one_provider_of_the_disk_that_they_share(cloud: SharedCloud, placement: PlacementClient) -> None:
    (pool,) = pools(placement)
    assert placement.get_inventories(pool.uuid).keys() == {"DISK_GB"}
    nodes = {one.name: one.uuid for one in placement.list_providers() if one.name in HOSTS}
    assert len(nodes) == 4
    for each in nodes.values():
        assert placement.get_inventories(each).keys() == {"VCPU", "MEMORY_MB"}

    server = cloud.with_disks()
    held = cloud.allocations(server.id)
    assert held[pool.name] == {"DISK_GB": 3} and "DISK_GB" not in held[cloud.host_of(server)]
    cloud.resized(server, cloud.larger(2))
    assert placement.get_usages(pool.uuid) == {"DISK_GB": 4}
    cloud.confirmed(server)
    assert placement.get_usages(pool.uuid) == {"DISK_GB": 4}
    cloud.check_clean(server)


def test_a_full_pool_takes_no_server_whichever_host_it_would_run_on(
    cloud: SharedCloud, placement: PlacementClient
) -> None:
    (pool,) = pools(placement)
    before = placement.get_inventories(pool.uuid)
    placement.set_inventory(pool.uuid, {"DISK_GB": Inventory(3, allocation_ratio=1.0)})
    try:
        cloud.with_disks()
        with pytest.raises(AssertionError, match="have no DISK_GB free"):
            cloud.boot("second", flavor=cloud.flavor("pool.one", gen=2, disk=1))
        cloud.clean()
        cloud.settle()
    finally:
        placement.set_inventory(pool.uuid, before)


@pytest.fixture
def full_pool(placement: PlacementClient) -> Iterator[str]:
    """The provider of a pool that has 4 GiB."""
    (pool,) = pools(placement)
    before = placement.get_inventories(pool.uuid)
    placement.set_inventory(pool.uuid, {"DISK_GB": Inventory(4, allocation_ratio=1.0)})
    yield pool.uuid
    placement.set_inventory(pool.uuid, before)


@pytest.mark.parametrize("gen", [1, 2])
def test_a_move_inside_of_a_pool_needs_room_only_for_what_the_disk_grows_by(
    cloud: SharedCloud, placement: PlacementClient, full_pool: str, gen: int
) -> None:
    server = cloud.with_disks()
    larger = cloud.larger(gen)
    for revert in (True, False):
        cloud.resized(server, larger)
        assert placement.get_usages(full_pool) == {"DISK_GB": 4}
        assert cloud.audit().is_clean
        if revert:
            cloud.reverted(server)
            assert placement.get_usages(full_pool) == {"DISK_GB": 3}
            cloud.check_clean(server)
    cloud.confirmed(server)
    assert placement.get_usages(full_pool) == {"DISK_GB": 4}
    cloud.check_clean(server)


def test_a_server_of_a_full_pool_migrates_inside_of_it(
    cloud: SharedCloud, placement: PlacementClient, full_pool: str
) -> None:
    placement.set_inventory(full_pool, {"DISK_GB": Inventory(3, allocation_ratio=1.0)})
    server = cloud.with_disks()
    cloud.admin.compute.migrate_server(server.id)
    cloud.wait(server, "VERIFY_RESIZE")
    assert placement.get_usages(full_pool) == {"DISK_GB": 3}
    cloud.confirmed(server)
    cloud.check_clean(server)
    before = cloud.host_of(server)
    cloud.admin.compute.live_migrate_server(server.id, host=None, block_migration="auto")
    cloud.wait(server, "ACTIVE")
    assert cloud.host_of(server) != before
    assert placement.get_usages(full_pool) == {"DISK_GB": 3}
    cloud.check_clean(server)


@pytest.mark.usefixtures("full_pool")
def test_a_resize_that_a_pool_has_no_room_for_is_refused(cloud: SharedCloud) -> None:
    server = cloud.with_disks()
    cloud.member.compute.resize_server(server.id, cloud.flavor("shared.much", gen=2, disk=4, ephemeral=1, swap=64))
    cloud.failed(server)
    assert "2 are full on DISK_GB (needs 3, 1 free)" in repr(cloud.moves(server)[-1])
    cloud.check_clean(server)


def test_a_host_reports_its_pool_again_when_its_size_has_changed(placement: PlacementClient, node: str) -> None:
    reported = SharedPool(placement, node)
    reported.report("store-of-one", DISK)
    placement.reset_calls()
    reported.report("store-of-one", DISK)
    assert not placement.calls
    reported.report("store-of-one", Inventory(120))
    (pool,) = placement.sharing_with(node, "DISK_GB")
    assert placement.get_inventories(pool)["DISK_GB"].total == 120


@pytest.mark.parametrize("next_storage", ["another", None])
def test_a_host_that_gets_other_storage_leaves_its_former_pool(
    placement: PlacementClient, node: str, next_storage: str | None
) -> None:
    SharedPool(placement, node).report("store-of-one", DISK)
    (former,) = placement.sharing_with(node, "DISK_GB")
    others = str(uuid.uuid4())
    placement.add_aggregate(node, others)
    SharedPool(placement, node).report(next_storage, DISK)
    now = placement.sharing_with(node, "DISK_GB")
    assert former not in now and len(now) == (next_storage is not None)
    assert others in placement.get_aggregates(node)


def test_a_pool_that_an_operator_has_made_is_left_as_it_is(placement: PlacementClient, node: str) -> None:
    own, aggregate = str(uuid.uuid4()), str(uuid.uuid4())
    placement.ensure_provider(own, "nfs of rack 7")
    placement.set_inventory(own, {"DISK_GB": Inventory(7)})
    placement.change_traits(own, add={SHARES}, remove=set())
    for each in (own, node):
        placement.add_aggregate(each, aggregate)
    SharedPool(placement, node).report("store-of-one", DISK)
    assert placement.sharing_with(node, "DISK_GB") == [own]
    assert placement.get_inventories(own)["DISK_GB"].total == 7
