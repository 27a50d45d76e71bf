"""Pinned CPUs and pages in a live migration: claimed at the target before, released at the source after. PCI devices stay."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.moves.hardware import recorded_claims
from tests.functional.servers import pinned_cloud
from tests.functional.servers.pinned_cloud import NOTHING, claims_of, guest_topology, held, nothing_held, pinned

from .live_cloud import LiveCloud

CLOUD = pinned_cloud.CLOUD


def test_a_pinned_server_takes_what_is_free_at_its_target(cloud: LiveCloud) -> None:
    flavor = pinned(cloud, "live.pinned", gen="1", hw__mem_page_size="large")
    server = cloud.boot(flavor=flavor)
    source = cloud.host_of(server)
    target = cloud.other(source)
    # So that the same CPUs are not free there.
    sitting = cloud.booted_on(target, "sitting", flavor)
    memory = cloud.remember(server, "a line")
    assert held(cloud, source) == {"cpus": [4, 5], "pages": 64, "devices": []}
    assert cloud.migrated(server, host=target).compute_host == target
    assert held(cloud, source) == NOTHING and claims_of(cloud, server) == [target]
    record = cloud.record(server, "cell1")
    assert record.numa_topology is not None and record.migration_context is None
    assert list(record.numa_topology.cells[0].cpu_pinning.values()) == [6, 7]
    assert guest_topology(cloud, server)[0] == record.numa_topology
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, target)
    for each in (server, sitting):
        cloud.admin.compute.delete_server(each.id)
    cloud.clean()
    assert nothing_held(cloud)


def test_a_live_migration_that_fails_releases_what_it_claimed(cloud: LiveCloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "live.pinned", gen="1", hw__mem_page_size="large"))
    source = cloud.host_of(server)
    before = held(cloud, source)
    for method in ("live_migrate", "prepare_live_target"):
        cloud.break_driver(list(cloud.parts.computes), method)
        assert cloud.migrated(server).compute_host == source
        assert cloud.migration(server).status == "failed"
        assert held(cloud, source) == before and held(cloud, cloud.other(source)) == NOTHING
        cloud.check_left_nothing(server, source)
        cloud.heal()


def test_devices_can_not_be_taken_along(cloud: LiveCloud) -> None:
    flavor = pinned_cloud.make_flavor(cloud, "live.device", gen="1", pci_passthrough__alias="nic:1")
    server = cloud.boot(flavor=flavor)
    source = cloud.host_of(server)
    answer = cloud.migrate_live(server, version="2.33")
    assert answer.status_code == 400 and "PCI devices" in answer.text
    cloud.after(server)
    cloud.check_left_nothing(server, source)


def elsewhere(cloud: LiveCloud, server: Any) -> str:
    return "cell2-host1" if cloud.host_of(server).startswith("cell1") else "cell1-host1"


def test_a_pinned_server_takes_its_claim_to_another_cell(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    flavor = pinned(cloud, "near-live.pinned", hw__mem_page_size="large")
    server = cloud.boot(flavor=flavor)
    source, target = cloud.host_of(server), elsewhere(cloud, server)
    # So that the same CPUs are not free there.
    cloud.booted_on(target, "sitting", flavor)
    before = cloud.record(server, source[:5]).numa_topology
    memory = cloud.remember(server, "a line")
    driver = cloud.driver(target)
    seen: list[Any] = []
    works = driver.resume_woken

    def look_and_continue(uuid: str, *, is_paused: bool) -> None:
        # The record names the target by now: that is what both hosts get if they lose their claims.
        record = cloud.record(server, target[:5])
        seen.extend(each.instance.numa_topology for host in (source, target) for each in recorded_claims(record, host))
        works(uuid, is_paused=is_paused)

    monkeypatch.setattr(driver, "resume_woken", look_and_continue)
    assert cloud.migrated(server, host=target).compute_host == target
    after = cloud.record(server, target[:5]).numa_topology
    assert seen == [before, after] and before != after
    assert held(cloud, source) == NOTHING and claims_of(cloud, server) == [target]
    record = cloud.record(server, target[:5])
    assert record.numa_topology is not None and record.migration_context is None
    assert guest_topology(cloud, server)[0] == record.numa_topology
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, target)


def test_devices_can_not_be_taken_to_another_cell(cloud: LiveCloud) -> None:
    server = cloud.boot(flavor=pinned_cloud.make_flavor(cloud, "near-live.device", pci_passthrough__alias="nic:1"))
    source = cloud.host_of(server)
    assert cloud.migrated(server, host=elsewhere(cloud, server)).compute_host == source
    assert "PCI devices" in cloud.faults(server, source[:5])[-1].message
    assert cloud.migration(server).status == "error"
    cloud.check_left_nothing(server, source)
