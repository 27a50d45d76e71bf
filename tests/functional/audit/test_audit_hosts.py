"""Hypervisors against the records: guests, disks, image caches."""

from __future__ import annotations

import uuid as uuids
from typing import Any

import pytest

from causeway.virt.driver import BaseImage, GuestSpec, RootDisk
from tests.functional.servers.audited_cloud import AuditedCloud


def spawn(cloud: AuditedCloud, server: Any, host: str, *, power_on: bool = True, uuid: str | None = None) -> None:
    """A guest of a server on a host, as it should never be."""
    instance = cloud.record(server, "cell1")
    instance.uuid = uuid or instance.uuid
    image, _format = cloud.parts.hosts.demo_image()
    root = RootDisk(base=BaseImage(image, "raw", 1), base_image_id=cloud.image_id)
    cloud.driver(host).spawn(GuestSpec(instance, root, volumes=[], vifs=[], power_on=power_on))


def destroy(cloud: AuditedCloud, uuid: str, host: str) -> None:
    cloud.driver(host).destroy(uuid, [], [], destroy_disks=True)


# guests


@pytest.mark.expects_errors("is started on .* while another host runs it")
def test_a_guest_that_runs_on_two_hosts_is_never_touched(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    host, other = cloud.show(server).compute_host, cloud.other_host(server)
    spawn(cloud, server, other)

    report = cloud.audit(fix=True)
    found = {each.kind: each for each in report.disagreements}
    assert set(found) == {"guest.running_twice", "guest.orphaned", "disk.orphaned"}
    assert found["guest.running_twice"].severity == "critical"
    assert report.fixed == [] and all(each.left for each in report.disagreements)
    assert cloud.driver(host).running_anywhere(server.id) == sorted([host, other])
    destroy(cloud, server.id, other)


def test_a_guest_at_the_source_of_a_finished_move_is_orphaned(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    source = cloud.show(server).compute_host
    cloud.resized(server)
    spawn(cloud, server, source, power_on=False)

    found = cloud.only("guest.orphaned")
    assert found.resource == f"guest on {source}"
    cloud.only_reports("guest.orphaned")
    destroy(cloud, server.id, source)


def test_a_guest_that_no_record_knows_is_found_and_not_touched(cloud: AuditedCloud) -> None:
    server, stranger = cloud.boot(), str(uuids.uuid4())
    spawn(cloud, server, "cell2-host1", uuid=stranger)
    report = cloud.audit(fix=True)
    assert {each.kind for each in report.disagreements} == {"guest.unknown", "disk.orphaned"}
    assert report.fixed == []
    destroy(cloud, stranger, "cell2-host1")


def test_a_server_whose_guest_is_missing_is_critical(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    driver = cloud.driver(cloud.show(server).compute_host)
    driver.destroy(server.id, [], [], destroy_disks=False)

    assert cloud.only("guest.missing").severity == "critical"
    cloud.only_reports("guest.missing")


def test_a_guest_that_does_not_run_as_its_server_does(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    cloud.driver(cloud.show(server).compute_host).power_off(server.id, 0)

    assert "shutdown" in cloud.only("guest.power_state").message
    cloud.only_reports("guest.power_state")


# disks


def test_disks_of_a_server_that_is_whole_elsewhere_go(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    other = cloud.other_host(server)
    spawn(cloud, server, other, power_on=False)
    cloud.driver(other).destroy(server.id, [], [], destroy_disks=False)

    assert cloud.only("disk.orphaned").resource == f"disks on {other}"
    cloud.fixes("disk.orphaned")
    assert cloud.hosts_of(server) == {cloud.show(server).compute_host: "guest"}


def test_disks_put_aside_by_a_move_that_has_ended_go(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    source = cloud.show(server).compute_host
    cloud.confirmed(cloud.resized(server))
    instance = cloud.record(server, "cell2")
    image, _format = cloud.parts.hosts.demo_image()
    driver = cloud.driver(source)
    driver.spawn(
        GuestSpec(instance, RootDisk(BaseImage(image, "raw", 1), cloud.image_id), volumes=[], vifs=[], power_on=False)
    )
    driver.destroy(server.id, [], [], destroy_disks=False)
    driver.stash_disks(server.id)

    cloud.only("disk.stashed")
    cloud.fixes("disk.stashed")
    assert list(cloud.hosts_of(server)) == [cloud.show(server).compute_host]


def test_disks_that_may_be_the_only_copy_are_kept(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    host, other = cloud.show(server).compute_host, cloud.other_host(server)
    spawn(cloud, server, other, power_on=False)
    cloud.driver(other).destroy(server.id, [], [], destroy_disks=False)
    destroy(cloud, server.id, host)

    report = cloud.audit(fix=True)
    assert {each.kind for each in report.disagreements} == {"disk.missing", "disk.orphaned", "guest.missing"}
    assert report.fixed == []
    assert cloud.hosts_of(server) == {other: "disks"}
    cloud.driver(other).delete_disks(server.id)


def test_disks_of_a_deleted_server_go(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    cloud.driver(host).destroy(server.id, [], [], destroy_disks=False)
    cloud.driver(host).stash_disks(server.id)
    spare = cloud.parts.state.host(host) / "instances" / f"{server.id}_resize"
    kept = spare.rename(spare.with_name("aside"))
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    kept.rename(spare)

    cloud.only("disk.stashed")
    cloud.fixes("disk.stashed")


def test_the_disks_kept_for_a_revert_must_be_there(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    source = cloud.show(server).compute_host
    cloud.resized(server)
    cloud.driver(source).delete_stashed_disks(server.id)
    assert f"stashed disks on {source}" in cloud.only("disk.missing").resource
    cloud.only_reports("disk.missing")


# image caches


def test_what_a_transfer_left_in_an_image_cache_goes(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    cache = cloud.parts.computes["cell2-host1"].host.image_cache
    left = cache.path(f"{uuids.uuid4()}.part-of-{server.id}")
    left.write_bytes(b"half a disk")

    assert cloud.only("file.orphaned").server == server.id
    cloud.fixes("file.orphaned")
    assert not left.exists()


def test_what_operations_left_beside_the_folders_of_guests_goes(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    other = cloud.parts.computes[cloud.other_host(server)].host
    cloud.parts.computes[host].host.departures.begin(str(uuids.uuid4()), server.id)
    other.driver.files.expect(cloud.driver(host).files.guests[server.id])

    report = cloud.audit(fix=True)
    found = [
        f"{kind}.part-of-{server.id} on {place}" for kind, place in (("departures", host), ("incoming", other.name))
    ]
    assert sorted(each.resource for each in report.fixed) == found
    assert report.disagreements == [] and cloud.audit().is_clean
    assert other.departures.servers() == [] and other.driver.list_temporary_files()["incoming"] == []


def test_a_download_that_may_continue_is_left_alone(cloud: AuditedCloud) -> None:
    cache = cloud.parts.computes["cell2-host1"].host.image_cache
    partial = cache.path(f".{uuids.uuid4()}.0a1b2c3d.partial")
    partial.write_bytes(b"half an image")

    assert cloud.audit().is_clean
    report = cloud.audit(fix=True, stale_after=0.0)
    assert [each.kind for each in report.fixed] == ["file.orphaned"] and not partial.exists()


def test_what_cannot_be_asked_is_said(cloud: AuditedCloud) -> None:
    cloud.option("http_retries", 0, "neutron")
    cloud.fail("status", "/ports", service="network", method="GET", status=503)
    report = cloud.audit()
    assert report.disagreements == [] and not report.is_clean
    assert ["network service" in each for each in report.unreached] == [True]
