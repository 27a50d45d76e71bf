"""No copy of a server is destroyed before the host of the other one has shown it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from causeway.model.states import PowerState
from causeway.store.cell import block_devices
from tests.functional.servers.broken_hosts import disks_of, lose_disks, lose_guest, state_of, tear_disk
from tests.functional.servers.moves_cloud import Cloud, until

REACHES = pytest.mark.parametrize("reach", ["cross", "same"])
FLAVORS = {"cross": ("gen1.small", "gen2.small"), "same": ("any.small", "any.medium")}


def moved(cloud: Cloud, reach: str, **fields: Any) -> tuple[Any, str, str]:
    """(a server in VERIFY_RESIZE with a line on its disk, its source, its target)."""
    server = cloud.boot(flavor=FLAVORS[reach][0], **fields)
    source = cloud.show(server).compute_host
    cloud.driver(source).guest_write(server.id, "precious")
    target = cloud.resized(server, FLAVORS[reach][1]).compute_host
    return server, source, target


def refused(cloud: Cloud, server: Any, way: str) -> str:
    """Asks for a confirm or revert that ends where it began; returns the message for its user."""
    faults = len(all_faults(cloud, server))
    getattr(cloud.member.compute, f"{way}_server_resize")(server.id)
    until(lambda: all_faults(cloud, server), lambda found: len(found) > faults, "a fault")
    cloud.settle()
    found = cloud.show(server)
    assert (found.status, found.task_state) == ("VERIFY_RESIZE", None)
    assert cloud.migration(server).status == "finished"
    message: str = all_faults(cloud, server)[-1].message
    assert "Nothing was destroyed" in message
    assert not any(host in message for host in cloud.parts.computes), message
    action = cloud.action(server, f"{way}Resize")
    assert "Error" in {event["result"] for event in action.events}
    return message


def all_faults(cloud: Cloud, server: Any) -> list[Any]:
    return cloud.faults(server, cloud.show(server).compute_host[:5])


BREAKS: dict[str, Callable[[Cloud, str, str], None]] = {
    "the guest and its disks are gone": lambda cloud, host, uuid: lose_guest(cloud.driver(host), uuid),
    "the disks are gone": lambda cloud, host, uuid: lose_disks(state_of(cloud, host), uuid),
    "the disk is torn": lambda cloud, host, uuid: tear_disk(state_of(cloud, host), uuid),
    "the disk is empty": lambda cloud, host, uuid: empty(disks_of(state_of(cloud, host), uuid) / "disk"),
}


def empty(disk: Path) -> None:
    disk.write_bytes(b"")


@REACHES
@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("was", ["ACTIVE", "SHUTOFF"])
def test_a_target_that_lost_the_server_is_not_confirmed_and_the_user_reverts(
    cloud: Cloud, reach: str, broken: str, was: str
) -> None:
    server, source, target = moved(cloud, reach)
    if was == "SHUTOFF":
        cloud.driver(target).power_off(server.id, 0)
    BREAKS[broken](cloud, target, server.id)
    before = cloud.allocations(server.id), cloud.ports(server)
    refused(cloud, server, "confirm")
    assert "stashed" in cloud.hosts_of(server)[source]
    assert (cloud.allocations(server.id), cloud.ports(server)) == before
    found = cloud.reverted(server)
    assert (found.status, found.compute_host) == ("ACTIVE", source)
    assert "precious" in cloud.driver(source).guest_read(server.id)
    assert cloud.hosts_of(server) == {source: "guest"}


@REACHES
@pytest.mark.parametrize("broken", ["gone", "torn"])
def test_a_source_that_lost_the_disks_is_not_reverted_to_and_the_user_confirms(
    cloud: Cloud, reach: str, broken: str
) -> None:
    server, source, target = moved(cloud, reach)
    break_it = lose_disks if broken == "gone" else tear_disk
    break_it(state_of(cloud, source), server.id, stashed=True)
    refused(cloud, server, "revert")
    assert cloud.hosts_of(server)[target] == "guest"
    found = cloud.confirmed(server)
    assert (found.status, found.compute_host) == ("ACTIVE", target)
    assert "precious" in cloud.driver(target).guest_read(server.id)


@REACHES
@pytest.mark.parametrize("disk", ["disk.eph0", "disk.swap"])
@pytest.mark.parametrize("way", ["confirm", "revert"])
def test_every_disk_that_the_records_name_counts(cloud: Cloud, reach: str, disk: str, way: str) -> None:
    gens = (1, 2) if reach == "cross" else (None, None)
    small = cloud.flavor(f"local.small.{reach}", gen=gens[0], ephemeral=1, swap=64)
    large = cloud.flavor(f"local.large.{reach}", gen=gens[1], ephemeral=1, swap=64, ram=256)
    server = cloud.boot(flavor=small)
    source = cloud.show(server).compute_host
    target = cloud.resized(server, large).compute_host
    stashed = way == "revert"
    (disks_of(state_of(cloud, source if stashed else target), server.id, stashed=stashed) / disk).unlink()
    refused(cloud, server, way)
    other = "revert" if way == "confirm" else "confirm"
    found = (cloud.reverted if other == "revert" else cloud.confirmed)(server)
    assert (found.status, found.compute_host) == ("ACTIVE", source if other == "revert" else target)


@REACHES
@pytest.mark.parametrize("way", ["confirm", "revert"])
def test_nothing_is_destroyed_if_a_volume_is_not_attached_as_recorded(cloud: Cloud, reach: str, way: str) -> None:
    cloud.needs_devcloud("ends an attachment behind the server's back")
    server = cloud.boot(flavor=FLAVORS[reach][0])
    volume = cloud.volume()
    cloud.attach(server, volume)
    target = cloud.resized(server, FLAVORS[reach][1]).compute_host
    with_target = {
        device.attachment_id
        for device in block_devices.of_instance(cloud.cell(target[:5]), server.id)
        if device.is_volume
    }
    for each in cloud.attachments(server):
        if (each["id"] in with_target) is (way == "confirm"):
            cloud.admin.block_storage.delete(f"/attachments/{each['id']}")
    assert volume.id in refused(cloud, server, way)
    assert "stashed" in "".join(cloud.hosts_of(server).values())


@REACHES
def test_a_delete_needs_no_copy(cloud: Cloud, reach: str) -> None:
    """Its user wants all of it gone."""
    server, _source, target = moved(cloud, reach)
    lose_guest(cloud.driver(target), server.id)
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.member.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()
    assert cloud.hosts_of(server) == {}


def test_orphaned_disks_are_kept_while_the_servers_own_are_damaged(cloud: Cloud) -> None:
    """Bug 1960230 deletes what an earlier move did not delete; not if it may be better than what is there."""
    server = cloud.boot()
    host = cloud.show(server).compute_host
    orphaned = disks_of(state_of(cloud, host), server.id, stashed=True)
    orphaned.mkdir()
    (orphaned / "disk").write_bytes((disks_of(state_of(cloud, host), server.id) / "disk").read_bytes())
    tear_disk(state_of(cloud, host), server.id)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert orphaned.is_dir()


def test_a_shelved_server_keeps_its_disks_while_its_image_is_not_complete(cloud: Cloud) -> None:
    cloud.option("shelved_offload_time", -1)
    server = cloud.boot()
    host = cloud.show(server).compute_host
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED")
    image = next(each for each in cloud.admin.image.images() if each.name == "server-shelved")
    cloud.admin.image.delete_image(image)
    cloud.admin.compute.post(f"/servers/{server.id}/action", json={"shelveOffload": None})
    until(lambda: all_faults(cloud, server), bool, "a fault")
    cloud.wait(server, "SHELVED")
    assert cloud.hosts_of(server) == {host: "guest"}


@REACHES
def test_a_guest_that_was_paused_behind_our_back_is_off_before_its_disks_are_sent(
    cloud: Cloud, reach: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record says ACTIVE. A paused guest still has its disks open, and whoever continues it writes to them."""
    server = cloud.boot(flavor=FLAVORS[reach][0])
    driver = cloud.driver(cloud.show(server).compute_host)
    driver.guest_write(server.id, "precious")
    driver.pause(server.id)
    seen: list[PowerState | None] = []
    export = driver.export_disk

    def looked_at(*given: Any, **named: Any) -> Any:
        seen.append(driver.inspect(server.id).power_state)
        return export(*given, **named)

    monkeypatch.setattr(driver, "export_disk", looked_at)
    target = cloud.resized(server, FLAVORS[reach][1]).compute_host
    assert set(seen) == {PowerState.SHUTDOWN}
    assert "precious" in cloud.driver(target).guest_read(server.id)
