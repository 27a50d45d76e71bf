"""Placement is killed in the middle of a claim: what the server was about to do succeeds, and so does what it does next."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.clients.placement import PlacementClient
from tests.functional.half_written import half_delete, half_write, next_write_dies
from tests.functional.live.live_cloud import ONE_NETWORK, LiveCloud
from tests.functional.servers.failures.test_failed_operations import act

KIND = LiveCloud
CLOUD = {"overrides": {"simulated": ONE_NETWORK, "DEFAULT": {"shelved_offload_time": 0}}}
pytestmark = pytest.mark.embedded("kills Placement")

SMALL = {"VCPU": 1, "MEMORY_MB": 128, "DISK_GB": 1}
MEDIUM = {"VCPU": 2, "MEMORY_MB": 192, "DISK_GB": 2}


@pytest.fixture(autouse=True)
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causeway.clients.placement.hidden.SETTLED_AFTER", 0.0)


def another(cloud: LiveCloud) -> PlacementClient:
    """A client that knows nothing of what the cloud wrote."""
    client: PlacementClient = cloud.embedded.placement.client()
    return client


def node(cloud: LiveCloud, host: str) -> str:
    return another(cloud).list_providers(name=host)[0].uuid


def shelved(cloud: LiveCloud) -> Any:
    server = cloud.boot()
    act(cloud, server, "shelve")
    return cloud.wait(server, "SHELVED_OFFLOADED")


def holds(cloud: LiveCloud, server: Any, amounts: dict[str, int]) -> None:
    """On its host, and nowhere else."""
    assert another(cloud).get_usages(node(cloud, cloud.host_of(server))) == amounts
    assert cloud.allocations(server.id) == {cloud.host_of(server): amounts}
    assert cloud.audit().is_clean


def test_a_build_succeeds_though_placement_dies_in_its_claim(cloud: LiveCloud) -> None:
    with next_write_dies() as left:
        server = cloud.boot()
    assert left == [server.id] * 3
    holds(cloud, server, SMALL)


def test_an_unshelve_succeeds_though_placement_dies_in_its_claim(cloud: LiveCloud) -> None:
    server = shelved(cloud)
    with next_write_dies() as left:
        act(cloud, server, "unshelve")
        cloud.wait(server, "ACTIVE")
    assert set(left) == {server.id}
    holds(cloud, server, SMALL)


def test_an_unshelve_succeeds_long_after_placement_died_in_its_claim(cloud: LiveCloud) -> None:
    server = shelved(cloud)
    half_write(another(cloud), server.id, {node(cloud, "cell1-host1"): SMALL})
    act(cloud, server, "unshelve")
    cloud.wait(server, "ACTIVE")
    holds(cloud, server, SMALL)


def test_a_resize_succeeds_though_placement_dies_in_its_claim(cloud: LiveCloud) -> None:
    server = cloud.boot()
    with next_write_dies() as left:
        cloud.resized(server)
    assert cloud.migration(server).uuid in left
    cloud.confirmed(server)
    holds(cloud, server, MEDIUM)


def test_a_revert_succeeds_though_placement_died_in_a_delete(cloud: LiveCloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    half_delete(another(cloud), server.id)
    cloud.reverted(server)
    holds(cloud, server, SMALL)


def test_a_live_migration_succeeds_though_placement_dies_in_its_claim(cloud: LiveCloud) -> None:
    server = cloud.boot()
    home = cloud.host_of(server)
    with next_write_dies() as left:
        found = cloud.migrated(server)
    assert left and found.compute_host != home
    holds(cloud, server, SMALL)


@pytest.mark.parametrize("action", ["resize", "live migration"])
def test_a_server_whose_allocations_are_half_deleted_moves(cloud: LiveCloud, action: str) -> None:
    server = cloud.boot()
    home = cloud.host_of(server)
    half_delete(another(cloud), server.id)
    if action == "resize":
        cloud.resized(server)
        cloud.confirmed(server)
    else:
        cloud.migrated(server)
    assert cloud.host_of(server) != home
    holds(cloud, server, MEDIUM if action == "resize" else SMALL)


def test_a_server_whose_allocations_are_half_deleted_is_deleted(cloud: LiveCloud) -> None:
    server = cloud.boot()
    host = cloud.host_of(server)
    half_delete(another(cloud), server.id)
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    assert another(cloud).get_usages(node(cloud, host))["VCPU"] == 0
