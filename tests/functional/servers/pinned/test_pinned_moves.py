"""NUMA cells, pinned CPUs, huge pages and PCI devices: claimed at the target, the old ones kept until confirm."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.servers import pinned_cloud
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.pinned_cloud import FIRST, NOTHING, claims_of, guest_topology, held, nothing_held, pinned

CLOUD = pinned_cloud.CLOUD
ENDS = pytest.mark.parametrize("end", ["confirm", "revert"])
TARGETS = pytest.mark.parametrize("gen", ["1", "2"], ids=["same cell", "other cell"])


def finish(cloud: Cloud, server: Any, end: str) -> Any:
    return cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)


def on_host(cloud: Cloud, name: str, flavor: str, host: str) -> Any:
    """A server that is on this host."""
    server = cloud.boot(name, flavor=flavor)
    if cloud.show(server).compute_host != host:
        cloud.admin.compute.migrate_server(server.id, host=host)
        cloud.wait(server, "VERIFY_RESIZE")
        cloud.confirmed(server)
    return server


@ENDS
@TARGETS
def test_a_pinned_server_is_claimed_at_its_target_and_kept_at_its_source(cloud: Cloud, gen: str, end: str) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    source = cloud.show(server).compute_host
    assert held(cloud, source)["cpus"] == [4, 5]
    assert cloud.allocations(server.id)[source]["PCPU"] == 2
    before = (cloud.record(server, "cell1").numa_topology, guest_topology(cloud, server))

    moved = cloud.resized(server, pinned(cloud, f"pinned.4.{gen}", 4, gen=gen))

    target = moved.compute_host
    assert (target != source, target[:5]) == (True, f"cell{gen}")
    assert held(cloud, source)["cpus"] == [4, 5]
    assert held(cloud, target)["cpus"] == [4, 5, 6, 7]
    record = cloud.record(server, f"cell{gen}")
    assert record.numa_topology is not None and record.migration_context is not None
    assert record.numa_topology.cells[0].cpu_pinning == {0: 4, 1: 5, 2: 6, 3: 7}
    assert record.migration_context.new_numa_topology == record.numa_topology
    assert record.migration_context.old_numa_topology == before[0]
    assert guest_topology(cloud, server)[0] == record.numa_topology

    after = finish(cloud, server, end)

    there, gone = (target, source) if end == "confirm" else (source, target)
    assert after.compute_host == there
    assert claims_of(cloud, server) == [there]
    assert held(cloud, gone) == NOTHING
    assert held(cloud, there)["cpus"] == ([4, 5, 6, 7] if end == "confirm" else [4, 5])
    record = cloud.record(server, there[:5])
    assert record.numa_topology is not None and record.migration_context is None
    assert guest_topology(cloud, server)[0] == record.numa_topology
    if end == "revert":
        assert (record.numa_topology, guest_topology(cloud, server)) == before
    cloud.clean()
    assert nothing_held(cloud)


@ENDS
@TARGETS
def test_devices_pages_and_cells_move_together(cloud: Cloud, gen: str, end: str) -> None:
    small: dict[str, Any] = {"hw__mem_page_size": "large", "pci_passthrough__alias": "nic:1"}
    server = cloud.boot(flavor=pinned_cloud.make_flavor(cloud, "numa.1", gen="1", hw__numa_nodes="1", **small))
    source = cloud.show(server).compute_host
    assert held(cloud, source) == {"cpus": [], "pages": 64, "devices": [FIRST]}
    larger: dict[str, Any] = {"hw__numa_nodes": "2", "hw__mem_page_size": "2048", "pci_passthrough__alias": "nic:2"}
    moved = cloud.resized(server, pinned_cloud.make_flavor(cloud, f"numa.2.{gen}", ram=256, gen=gen, **larger))

    target = moved.compute_host
    assert held(cloud, source) == {"cpus": [], "pages": 64, "devices": [FIRST]}
    assert held(cloud, target) == {"cpus": [], "pages": 128, "devices": [FIRST, pinned_cloud.SECOND]}
    topology, devices = guest_topology(cloud, server)
    assert topology is not None and [cell.pagesize for cell in topology.cells] == [2048, 2048]
    assert devices == [FIRST, pinned_cloud.SECOND]
    record = cloud.record(server, target[:5])
    assert [device.address for device in record.pci_devices] == devices
    assert [request.count for request in record.pci_requests] == [2]

    after = finish(cloud, server, end)

    record = cloud.record(server, after.compute_host[:5])
    assert len(record.pci_devices) == (2 if end == "confirm" else 1)
    assert [request.count for request in record.pci_requests] == ([2] if end == "confirm" else [1])
    assert guest_topology(cloud, server)[1] == [device.address for device in record.pci_devices]
    assert held(cloud, target if end == "revert" else source) == NOTHING


@TARGETS
def test_a_cold_migration_pins_anew(cloud: Cloud, gen: str) -> None:
    there = f"cell{gen}-host2"
    source = "cell1-host1" if gen == "1" else "cell1-host2"
    flavor = pinned(cloud, "pinned.any")
    other = on_host(cloud, "other", flavor, there)
    server = on_host(cloud, "moving", flavor, source)
    cloud.admin.compute.migrate_server(server.id, host=there)
    cloud.wait(server, "VERIFY_RESIZE")
    assert len(held(cloud, there)["cpus"]) == 4
    topology, _devices = guest_topology(cloud, server)
    other_topology, _devices = guest_topology(cloud, other)
    assert topology is not None and other_topology is not None
    assert not set(topology.cells[0].cpu_pinning.values()) & set(other_topology.cells[0].cpu_pinning.values())


def test_a_move_from_a_pinned_flavor_to_a_plain_one_and_back(cloud: Cloud) -> None:
    plain = pinned_cloud.make_flavor(cloud, "plain.2", gen="2")
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    source = cloud.show(server).compute_host
    cloud.resized(server, plain)
    assert guest_topology(cloud, server) == (None, [])
    assert cloud.record(server, "cell2").numa_topology is None
    assert claims_of(cloud, server) == [source]
    cloud.reverted(server)
    assert held(cloud, source)["cpus"] == [4, 5]
    assert guest_topology(cloud, server)[0] == cloud.record(server, "cell1").numa_topology
    cloud.resized(server, plain)
    cloud.confirmed(server)
    assert nothing_held(cloud)
    moved = cloud.resized(server, "pinned.2")
    assert held(cloud, moved.compute_host)["cpus"] == [4, 5]


def test_where_nothing_fits_the_server_stays_and_its_fault_says_why(cloud: Cloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    before = (cloud.reality(server), cloud.record(server, "cell1").numa_topology)
    cloud.member.compute.resize_server(server.id, pinned(cloud, "pinned.6", 6, gen="2"))
    cloud.failed(server)
    assert (cloud.reality(server), cloud.record(server, "cell1").numa_topology) == before
    (fault,) = cloud.faults(server)
    assert "2 have too few free dedicated CPUs in one NUMA cell (needs 6, 4 free)" in fault.message
    assert claims_of(cloud, server) == [cloud.show(server).compute_host]


def test_a_failure_after_the_claim_releases_it(cloud: Cloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    source = cloud.show(server).compute_host
    cloud.without_patience()
    cloud.without_rounds()
    cloud.fail("status", "/file$", method="PUT", status=503)
    cloud.member.compute.resize_server(server.id, pinned(cloud, "pinned.4.2", 4, gen="2"))
    cloud.failed(server)
    assert claims_of(cloud, server) == [source]
    assert held(cloud, source)["cpus"] == [4, 5]
    record = cloud.record(server, "cell1")
    assert record.migration_context is None and record.numa_topology is not None
    assert guest_topology(cloud, server)[0] == record.numa_topology


def test_delete_in_verify_resize_frees_both_ends(cloud: Cloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.nic", gen="1", pci_passthrough__alias="nic:1"))
    cloud.resized(server, pinned(cloud, "pinned.4.2", 4, gen="2"))
    assert len(claims_of(cloud, server)) == 2
    cloud.clean()
    assert nothing_held(cloud)
