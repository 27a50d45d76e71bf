"""Known bugs, section 2: what is counted while servers move. See docs/known-bugs.md."""

from __future__ import annotations

import dataclasses
import shutil
from typing import Any

import pytest

from causeway import errors
from causeway.rpc.transport import Outgoing
from causeway.store.api import cells as cell_records
from causeway.store.cell import hosts

from .known_bugs_cloud import KnownBugsCloud

SMALL, MEDIUM = {"VCPU": 1, "MEMORY_MB": 128, "DISK_GB": 1}, {"VCPU": 2, "MEMORY_MB": 192, "DISK_GB": 2}


CALLS = {
    "resize": [
        "prep_snapshot_based_resize_at_dest",
        "begin_round",
        "receive_round",
        "prep_snapshot_based_resize_at_source",
        "finish_snapshot_based_resize_at_dest",
    ],
    "confirm": ["verify_server", "confirm_snapshot_based_resize_at_source"],
    "revert": ["verify_server", "drop_move_at_dest", "restore_at_source"],
}


@pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
@pytest.mark.embedded("looks at calls")
def test_both_ends_are_held_from_the_first_call_of_a_move_to_its_last(cloud: KnownBugsCloud, flavor: str) -> None:
    """1944759, 1879878, 1834349, 1641750, 1896463, 1849165, 1600304, 1540526: whenever hosts report themselves."""
    server = cloud.boot()
    home = cloud.show(server).compute_host
    # A migration of this server that failed counts for nothing in a later one.
    cloud.without_patience()
    cloud.lose(CALLS["resize"][0], times=9)
    cloud.member.compute.resize_server(server.id, flavor)
    cloud.failed(server)
    cloud.heal()
    seen: dict[str, tuple[Any, Any]] = {}

    def look(message: Outgoing) -> None:
        cloud.report()
        seen[message.method] = (cloud.allocations(server.id), cloud.allocations(cloud.migration(server).uuid))

    def check(operation: str, there: str) -> None:
        assert set(seen) == set(CALLS[operation])
        assert all(held == ({there: MEDIUM}, {home: SMALL}) for held in seen.values()), seen
        seen.clear()

    for end in ("revert", "confirm"):
        cloud.at_every_call(look)
        there = cloud.resized(server, flavor).compute_host
        cloud.settle()
        check("resize", there)
        if end == "revert":
            cloud.reverted(server)
            check("revert", there)
            assert (cloud.allocations(server.id), cloud.allocations(cloud.migration(server).uuid)) == (
                {home: SMALL},
                {},
            )
        else:
            cloud.confirmed(server)
            # The guest is looked at once more when the source is free already.
            seen.pop("inspect_instance")
            check("confirm", there)
            assert cloud.allocations(server.id) == {there: MEDIUM}
            assert cloud.allocations(cloud.migration(server).uuid) == {}


def test_the_disk_of_a_flavor_does_not_count_if_the_root_disk_is_a_volume(cloud: KnownBugsCloud) -> None:
    """1796737, 1825020, 1728603: not before a move, not after it; and a flavor with a smaller disk, or none, is fine."""
    server = cloud.boot_from_volume()
    without_disk = {"VCPU": 1, "MEMORY_MB": 128}
    home = cloud.show(server).compute_host
    assert cloud.allocations(server.id) == {home: without_disk}
    cloud.report(home)
    (node,) = hosts.list_nodes(cloud.cell("cell1"), host=home)
    assert (node.vcpus_used, node.local_gb_used) == (1, 0)
    with cloud.passing_flavor("diskless", disk=0) as diskless:
        there = cloud.resized(server, diskless).compute_host
        assert cloud.allocations(server.id) == {there: without_disk}
        assert cloud.allocations(cloud.migration(server).uuid) == {home: without_disk}
        assert cloud.confirmed(server).status == "ACTIVE"
    assert cloud.hosts_of(server) == {there: "guest"}


def test_disks_that_vanish_during_a_move_break_no_report_and_no_audit(cloud: KnownBugsCloud) -> None:
    """1774249."""
    server = cloud.boot()
    home = cloud.show(server).compute_host
    cloud.resized(server)
    cloud.settle()
    shutil.rmtree(cloud.parts.state.host(home) / "instances" / f"{server.id}_resize")
    cloud.report(home)
    assert cloud.driver(home).disk_bytes(server.id) in (None, 0)
    assert cloud.audit().disagreements != []
    cloud.confirmed(server)
    assert cloud.audit().is_clean


def test_no_host_takes_over_the_node_of_another_one(cloud: KnownBugsCloud) -> None:
    """1853009: so the end of one host's service ends no node of another one: neither its record goes nor its provider."""
    database = cloud.cell("cell1")
    (real,) = hosts.list_nodes(database, host="cell1-host1")
    hosts.report_service(database, "renamed", "nova-compute", "compute", 2)
    cell = next(each for each in cloud.parts.cells.mappings() if each.name == "cell1")
    cell_records.map_host(cloud.parts.api_database, "renamed", cell.uuid)
    with pytest.raises(errors.Conflict):
        hosts.save_node(database, dataclasses.replace(real, host="renamed"))

    cloud.admin.compute.delete_service(cloud.service("renamed").id)
    assert [node.uuid for node in hosts.list_nodes(database, host="cell1-host1")] == [real.uuid]
    assert real.uuid in {provider.uuid for provider in cloud.parts.around.placement.list_providers()}
