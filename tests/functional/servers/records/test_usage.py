"""What hosts have given: Placement's allocations, and the usage that os-hypervisors shows, at every step of a move."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from causeway.clients.placement import Inventory
from causeway.faults import injector
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD = {"overrides": {"fault_injection": {"enabled": True}}}
WAYS = pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
ENDS = pytest.mark.parametrize("end", ["confirm", "revert"])
KINDS = pytest.mark.parametrize("boot", ["image", "volume"])
# From where the target is prepared until confirm or revert begins to release.
COMPARED = (
    "ReserveTarget",
    "HandOver",
    "FinishAtTarget",
    "SwitchInstanceMapping",
    "ShowTarget",
    "ReserveTarget",
    "HandOver",
    "FinishAtTarget",
    "MoveRecord",
    "FinishConfirm",
    "FinishRevert",
)


class Watcher:
    """Looks at every boundary between two steps, on the conductor's own thread: nothing moves meanwhile."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self.server: Any = None
        # (step, what the server holds, what its migration holds, what the hosts show as used, what Placement says)
        self.seen: list[tuple[str, Any, Any, dict[str, Any], dict[str, Any]]] = []

    def __call__(self, point: str, scope: injector.Scope) -> None:
        parts = point.split(".")
        if self.server is None or scope.operation_id is None or parts[2:] != ["do", "after"]:
            return
        cloud, migration = self._cloud, self._cloud.migration(self.server)
        self.seen.append(
            (
                parts[1],
                cloud.allocations(self.server.id),
                cloud.allocations(migration.uuid),
                shown_usage(cloud),
                placement_usage(cloud),
            )
        )


def shown_usage(cloud: Cloud) -> dict[str, tuple[int, int, int]]:
    cloud.report()
    answer = cloud.admin.compute.get("/os-hypervisors/detail", microversion="2.87").json()["hypervisors"]
    return {
        each["hypervisor_hostname"]: (each["vcpus_used"], each["memory_mb_used"], each["local_gb_used"])
        for each in answer
    }


def placement_usage(cloud: Cloud) -> dict[str, tuple[int, int, int]]:
    placement = cloud.parts.around.placement
    found = {}
    for provider in placement.list_providers():
        if provider.name in cloud.parts.computes:
            used = placement.get_usages(provider.uuid)
            found[provider.name] = (used.get("VCPU", 0), used.get("MEMORY_MB", 0), used.get("DISK_GB", 0))
    return found


@pytest.fixture
def watcher(cloud: Cloud) -> Iterator[Watcher]:
    watcher = Watcher(cloud)
    assert injector._active is not None
    injector._active.on_reach = watcher
    yield watcher
    injector._active.on_reach = None


@pytest.mark.embedded("stops the conductor between two steps")
@WAYS
@ENDS
@KINDS
def test_allocations_and_usage_agree_at_every_step(
    cloud: Cloud, watcher: Watcher, flavor: str, end: str, boot: str
) -> None:
    server = cloud.boot() if boot == "image" else cloud.boot_from_volume()
    source, at_source = cloud.show(server).compute_host, cloud.allocations(server.id)
    assert shown_usage(cloud) == placement_usage(cloud)
    watcher.server = server
    target = cloud.resized(server, flavor).compute_host
    cloud.settle()
    at_target = cloud.allocations(server.id)
    assert list(at_target) == [target]
    moving = list(watcher.seen)
    assert {"SelectDestination", "MoveRecord" if source[:5] == target[:5] else "ShowTarget"} <= {
        each[0] for each in moving
    }
    # From the choice of the target on the migration holds the source, and the server the target.
    assert {each[0]: (each[1], each[2]) for each in moving} == {each[0]: (at_target, at_source) for each in moving}

    watcher.seen.clear()
    (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    ending, kept = list(watcher.seen), (at_target if end == "confirm" else at_source)
    watcher.server = None
    # Until it is returned, the migration holds it; after that nobody but the server holds anything.
    assert [
        (each[1], each[2]) for each in ending if (each[1], each[2]) not in ((at_target, at_source), (kept, {}))
    ] == []
    assert (ending[-1][1], ending[-1][2]) == (kept, {})
    for step, _server, _migration, shown, in_placement in [*moving, *ending]:
        if step in COMPARED:
            assert shown == in_placement, step
    assert shown_usage(cloud) == placement_usage(cloud)


@WAYS
def test_a_failed_move_restores_everything(cloud: Cloud, flavor: str) -> None:
    server = cloud.boot()
    before = placement_usage(cloud)
    cloud.option("vif_plugging_timeout", 1)
    cloud.parts.devcloud.unpluggable_hosts = set(cloud.parts.computes) - {cloud.show(server).compute_host}
    cloud.member.compute.resize_server(server.id, flavor)
    cloud.failed(server)
    cloud.settle()
    assert placement_usage(cloud) == before == shown_usage(cloud)
    assert cloud.allocations(cloud.migration(server).uuid) == {}


@pytest.fixture
def shared_disk(cloud: Cloud) -> Iterator[str]:
    """A provider of DISK_GB that all hosts share, which have none of their own any more."""
    placement, name = cloud.parts.around.placement, "shared-storage"
    storage, aggregate, before = str(uuid.uuid4()), str(uuid.uuid4()), {}
    placement.ensure_provider(storage, name)
    placement.set_inventory(storage, {"DISK_GB": Inventory(1000)})
    placement.set_traits(storage, {"MISC_SHARES_VIA_AGGREGATE"})
    placement.add_aggregate(storage, aggregate)
    for provider in placement.list_providers():
        if provider.name in cloud.parts.computes:
            before[provider.uuid] = placement.get_inventories(provider.uuid)
            own = {kind: each for kind, each in before[provider.uuid].items() if kind != "DISK_GB"}
            placement.set_inventory(provider.uuid, own)
            placement.add_aggregate(provider.uuid, aggregate)
    yield name
    cloud.heal()
    cloud.settle()
    cloud.clean()
    for node, inventory in before.items():
        placement.remove_aggregate(node, aggregate)
        placement.set_inventory(node, inventory)
    placement.delete_provider(storage)


@pytest.mark.embedded("reports for a compute")
def test_a_host_does_not_report_a_shared_disk_to_placement(cloud: Cloud, shared_disk: str) -> None:
    placement, compute = cloud.parts.around.placement, cloud.parts.computes["cell1-host1"]
    node = next(one.uuid for one in placement.list_providers() if one.name == "cell1-host1")
    assert shared_disk
    # As at its start.
    compute._reporter.report_provider()
    assert set(placement.get_inventories(node)) == {"VCPU", "MEMORY_MB"}
    server = cloud.boot()
    assert "DISK_GB" not in cloud.allocations(server.id)[cloud.show(server).compute_host]


@WAYS
@ENDS
def test_disks_that_hosts_share_are_held_at_their_provider(
    cloud: Cloud, shared_disk: str, flavor: str, end: str
) -> None:
    server = cloud.boot()
    source = cloud.show(server).compute_host
    at_source = cloud.allocations(server.id)
    assert at_source[shared_disk] == {"DISK_GB": 1} and "DISK_GB" not in at_source[source]
    target = cloud.resized(server, flavor).compute_host
    assert target != source
    at_target, of_migration = cloud.allocations(server.id), cloud.allocations(cloud.migration(server).uuid)
    # The old disk is kept beside the new one until confirm or revert: both are there, and both are counted, once each.
    assert set(at_target) == {target, shared_disk} and set(of_migration) == {source, shared_disk}
    assert of_migration == at_source
    placement = cloud.parts.around.placement
    storage = next(one.uuid for one in placement.list_providers() if one.name == shared_disk)
    disks = at_target[shared_disk]["DISK_GB"], at_source[shared_disk]["DISK_GB"]
    assert placement.get_usages(storage) == {"DISK_GB": sum(disks)}
    (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    assert cloud.allocations(server.id) == (at_target if end == "confirm" else at_source)
    until(
        lambda: placement.get_usages(storage)["DISK_GB"],
        lambda used: used == disks[0 if end == "confirm" else 1],
        "the other disk to be released",
    )
