"""Servers stay in their zone when they move: because they were created in it, are pinned to it, have volumes in it, or because
``[scheduler] move_keeps_availability_zone`` says so. Each zone has a host of each cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from causeway.store.cell import hosts
from tests.functional.servers.moves_cloud import Cloud

# Hosts are switched off and on: the scheduler is to see it at once.
CLOUD = {"overrides": {"scheduler": {"host_state_max_age": 0.0}}}
ZONES = {"east": ("cell1-host1", "cell2-host1"), "west": ("cell1-host2", "cell2-host2")}


@pytest.fixture(scope="module", autouse=True)
def zones(module_cloud: Cloud) -> None:
    for zone, members in ZONES.items():
        aggregate = module_cloud.admin.compute.create_aggregate(name=zone, availability_zone=zone)
        for host in members:
            module_cloud.admin.compute.add_host_to_aggregate(aggregate, host)


@contextmanager
def only(cloud: Cloud, host: str) -> Iterator[None]:
    """Of the hosts that a server is not on, only this one is up."""
    others = [name for name in cloud.parts.computes if name != host]
    for name in others:
        set_down(cloud, name, True)
    try:
        yield
    finally:
        for name in others:
            set_down(cloud, name, False)


def set_down(cloud: Cloud, host: str, is_down: bool) -> None:
    database = cloud.cell(host[:5])
    (service,) = hosts.list_services(database, host=host, binary="nova-compute")
    hosts.update_service(database, service.uuid, disabled=is_down)


def boot(cloud: Cloud, host: str = "cell1-host1", **fields: Any) -> Any:
    """A server on a host that nobody asked for."""
    with only(cloud, host):
        server = cloud.boot(flavor="any.small", **fields)
    assert cloud.show(server).compute_host == host
    return server


def migrated(cloud: Cloud, server: Any) -> Any:
    cloud.admin.compute.migrate_server(server.id)
    return cloud.wait(server, "VERIFY_RESIZE")


def pin(cloud: Cloud, server: Any, zone: str | None) -> Any:
    body = {"server": {"pinned_availability_zone": zone}}
    return cloud.member.compute.put(f"/servers/{server.id}", json=body, microversion="2.104")


def pinned(cloud: Cloud, server: Any) -> Any:
    answer = cloud.member.compute.get(f"/servers/{server.id}", microversion="2.96").json()["server"]
    return answer["pinned_availability_zone"]


def test_a_move_stays_in_the_servers_zone_though_nobody_asked_for_it(cloud: Cloud) -> None:
    server = boot(cloud)
    assert (server.availability_zone, pinned(cloud, server)) == ("east", None)
    moved = migrated(cloud, server)
    assert (moved.compute_host, moved.availability_zone) == ("cell2-host1", "east")
    assert cloud.confirmed(server).availability_zone == "east"


def test_if_its_zone_has_no_host_the_move_fails_and_says_so(cloud: Cloud) -> None:
    server = boot(cloud)
    before = cloud.reality(server)
    set_down(cloud, "cell2-host1", True)
    try:
        cloud.admin.compute.migrate_server(server.id)
        cloud.failed(server)
    finally:
        set_down(cloud, "cell2-host1", False)
    assert cloud.reality(server) == before
    said = cloud.faults(server)[-1].message
    assert said.startswith("No valid host was found. 4 hosts: 2 are not in availability zone east, "), said


def test_the_option_gives_the_old_behaviour(cloud: Cloud) -> None:
    cloud.option("move_keeps_availability_zone", False, "scheduler")
    server = boot(cloud)
    set_down(cloud, "cell2-host1", True)
    try:
        moved = migrated(cloud, server)
    finally:
        set_down(cloud, "cell2-host1", False)
    assert moved.availability_zone == "west"


def test_a_revert_restores_the_zone(cloud: Cloud) -> None:
    cloud.option("move_keeps_availability_zone", False, "scheduler")
    for host, target in (("cell1-host1", "cell1-host2"), ("cell1-host1", "cell2-host2")):
        server = boot(cloud, host)
        cloud.admin.compute.migrate_server(server.id, host=target)
        assert cloud.wait(server, "VERIFY_RESIZE").availability_zone == "west"
        assert cloud.reverted(server).availability_zone == "east"


@pytest.mark.parametrize("how", ["created", "pinned"])
def test_a_server_that_was_created_in_a_zone_or_pinned_stays_whatever_the_option_says(cloud: Cloud, how: str) -> None:
    cloud.option("move_keeps_availability_zone", False, "scheduler")
    server = boot(cloud, **({"availability_zone": "east"} if how == "created" else {}))
    if how == "pinned":
        assert pin(cloud, server, "east").status_code == 200
    assert pinned(cloud, server) == "east"
    moved = migrated(cloud, server)
    assert (moved.compute_host, pinned(cloud, server)) == ("cell2-host1", "east")
    cloud.reverted(server)
    # Not even an administrator who names a host moves it elsewhere.
    cloud.admin.compute.migrate_server(server.id, host="cell2-host2")
    cloud.failed(server)
    assert "not in availability zone east" in cloud.faults(server)[-1].message


def test_an_unpinned_server_is_free(cloud: Cloud) -> None:
    cloud.option("move_keeps_availability_zone", False, "scheduler")
    server = boot(cloud, availability_zone="east")
    assert pin(cloud, server, None).status_code == 200
    assert pinned(cloud, server) is None
    cloud.admin.compute.migrate_server(server.id, host="cell2-host2")
    assert cloud.wait(server, "VERIFY_RESIZE").availability_zone == "west"


def test_pinning_to_another_zone_is_a_conflict(cloud: Cloud) -> None:
    server = boot(cloud)
    assert pin(cloud, server, "west").status_code == 409
    assert pinned(cloud, server) is None


def test_a_host_that_an_administrator_names_may_be_in_another_zone(cloud: Cloud) -> None:
    server = boot(cloud)
    cloud.admin.compute.migrate_server(server.id, host="cell2-host2")
    assert cloud.wait(server, "VERIFY_RESIZE").availability_zone == "west"


@pytest.mark.embedded("changes an option while the cloud runs")
def test_a_server_with_volumes_stays_if_volumes_must_be_in_its_zone(cloud: Cloud) -> None:
    cloud.option("move_keeps_availability_zone", False, "scheduler")
    server, plain = boot(cloud), boot(cloud)
    cloud.attach(server, cloud.volume())
    cloud.option("cross_az_attach", False, "cinder")
    for each, ends in ((server, "error"), (plain, "finished")):
        cloud.admin.compute.migrate_server(each.id, host="cell2-host2")
        cloud.settle()
        assert cloud.migration(each).status == ends
    assert migrated(cloud, server).compute_host == "cell2-host1"


def test_a_volume_of_another_zone_is_not_attached_then(cloud: Cloud) -> None:
    server, volume = boot(cloud), cloud.volume()
    cloud.option("cross_az_attach", False, "cinder")
    answer = cloud.member.compute.post(
        f"/servers/{server.id}/os-volume_attachments", json={"volumeAttachment": {"volumeId": volume.id}}
    )
    assert answer.status_code == 400
    assert "are not in the same availability_zone. Instance is in east. Volume is in nova" in answer.text
    assert cloud.attachments(server) == []
    assert cloud.member.block_storage.get_volume(volume.id).status == "available"


def test_a_server_is_made_where_its_volume_is_then(cloud: Cloud) -> None:
    cloud.option("cross_az_attach", False, "cinder")
    volume = cloud.volume()
    device = {"uuid": volume.id, "source_type": "volume", "destination_type": "volume", "boot_index": -1}
    root = {"uuid": cloud.image_id, "source_type": "image", "destination_type": "local", "boot_index": 0}
    body = {
        "name": "with-volume",
        "flavorRef": "any.small",
        "imageRef": cloud.image_id,
        "networks": "none",
        "block_device_mapping_v2": [root, device],
    }
    refused = cloud.member.compute.post("/servers", json={"server": body | {"availability_zone": "east"}})
    assert refused.status_code == 400
    assert "Server is in: east. Volumes are in: nova" in refused.text
    made = cloud.member.compute.post("/servers", json={"server": body})
    # The volume is in a zone that no host is in.
    server = cloud.member.compute.get_server(made.json()["server"]["id"])
    with pytest.raises(AssertionError, match="4 are not in availability zone nova"):
        cloud.wait(server, "ACTIVE")
