"""Near-live moves, and moves between kinds of storage: what shared storage has of a server is its host's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.servers.shared_disks.shared_cloud import HOSTS, SharedCloud

#: the hosts of both cells, but the last of the second cell, keep disks in one store
KIND = SharedCloud
CLOUD: dict[str, Any] = {
    "cells": 2,
    "hosts_per_cell": 2,
    "overrides": {"simulated": {"shared_stores": dict.fromkeys(HOSTS[:3], "pool")}},
}


def with_firmware(cloud: SharedCloud) -> Any:
    """A server in the first cell whose TPM keeps a state on its host."""
    flavor = cloud.flavor("shared.tpm.1", gen=1, ephemeral=1)
    cloud.admin.compute.create_flavor_extra_specs(cloud.admin.compute.find_flavor(flavor), {"hw:tpm_version": "2.0"})
    server = cloud.boot(flavor=flavor)
    cloud.driver(cloud.host_of(server)).guest_keep(server.id, "tpm2.0", "a key")
    cloud.write(server, "kept", "vdb")
    return server


def tied_to(cloud: SharedCloud, host: str, **fields: Any) -> str:
    """A flavor whose servers only this host takes."""
    if cloud.admin.compute.find_aggregate(host) is None:
        made = cloud.admin.compute.create_aggregate(name=host)
        cloud.admin.compute.set_aggregate_metadata(made, {"only": host})
        cloud.admin.compute.add_host_to_aggregate(made, host)
    name = cloud.flavor(f"only.{host}", ephemeral=1, **fields)
    specs = {"aggregate_instance_extra_specs:only": host}
    cloud.admin.compute.create_flavor_extra_specs(cloud.admin.compute.find_flavor(name), specs)
    return name


def test_firmware_state_travels_to_another_cell_and_disks_do_not(cloud: SharedCloud) -> None:
    server = with_firmware(cloud)
    flavor = tied_to(cloud, HOSTS[2])
    cloud.admin.compute.create_flavor_extra_specs(cloud.admin.compute.find_flavor(flavor), {"hw:tpm_version": "2.0"})
    cloud.resized(server, flavor)
    assert cloud.host_of(server) == HOSTS[2]
    assert "a key" in cloud.driver(HOSTS[2]).guest_firmware(server.id)["tpm2.0"]
    assert "kept" in cloud.read(server, "vdb")
    cloud.check_store(server, put_aside=True)
    cloud.confirmed(server)
    cloud.check_clean(server)


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_server_moves_into_the_store_and_out_of_it(cloud: SharedCloud, end: str) -> None:
    outside, inside = tied_to(cloud, HOSTS[3]), tied_to(cloud, HOSTS[0], vcpus=2)
    server = cloud.boot(flavor=outside)
    assert cloud.names(server) == []
    cloud.write(server, "first", "vda")
    cloud.write(server, "first", "vdb")
    for flavor, names in ((inside, 2), (outside, 0)):
        cloud.resized(server, flavor)
        assert len(cloud.names(server)) == 2
        assert "first" in cloud.read(server) and "first" in cloud.read(server, "vdb")
        cloud.write(server, f"on {flavor}")
        if end == "revert":
            cloud.reverted(server)
            assert f"on {flavor}" not in cloud.read(server)
            break
        cloud.confirmed(server)
        assert len(cloud.names(server)) == names
    cloud.settle()
    assert cloud.audit().is_clean
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    cloud.settle()
    assert cloud.store.names() == []


def test_a_guest_goes_near_live_with_its_memory_and_without_its_disks(cloud: SharedCloud) -> None:
    servers = (cloud.with_disks(gen=None) for _attempt in range(8))
    server = next(server for server in servers if cloud.host_of(server) in HOSTS[:2])
    source = cloud.host_of(server)
    cloud.driver(source).guest_remember(server.id, "a thought")
    answer = cloud.admin.compute.post(
        f"/servers/{server.id}/action",
        json={"os-migrateLive": {"host": HOSTS[2], "block_migration": "auto"}},
        microversion="2.96",
    )
    assert answer.status_code == 202, answer.text
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.host_of(server) == HOSTS[2], [(move.recipe, move.error) for move in cloud.moves(server)]
    assert cloud.moves(server)[-1].recipe == "near_live_migration"
    assert cloud.bytes_moved(server) == 0
    assert "a thought" in cloud.driver(HOSTS[2]).guest_memory(server.id)
    for device in ("vda", "vdb", "vdc"):
        assert f"written on {device}" in cloud.read(server, device)
    cloud.check_clean(server)


def test_a_shelved_server_leaves_the_store_and_comes_back(cloud: SharedCloud) -> None:
    server = cloud.with_disks()
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    assert cloud.names(server) == []
    cloud.member.compute.unshelve_server(server.id)
    cloud.wait(server, "ACTIVE")
    assert "written on vda" in cloud.read(server)
    if cloud.names(server):
        cloud.check_clean(server)


def test_a_rebuilt_server_has_one_disk_of_its_new_image(cloud: SharedCloud) -> None:
    server = cloud.with_disks()
    names = cloud.names(server)
    cloud.member.compute.rebuild_server(server, image=cloud.image_id)
    cloud.wait(server, "ACTIVE")
    assert "written on vda" not in cloud.read(server)
    assert cloud.names(server) == names
    cloud.check_clean(server)
