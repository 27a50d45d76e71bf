"""What users and operators do to servers after, between and instead of moves: states, images, rebuild, shelve."""

from __future__ import annotations

from typing import Any

import openstack.exceptions
import pytest

from causeway.conductor.upkeep import auto_offload
from causeway.embedded.cloud import EmbeddedCloud
from causeway.virt.simulated.driver import SimulatedDriver
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import Cloud, until


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> Cloud:
    return AuditedCloud(embedded)


def act(cloud: Cloud, server: Any, name: str, value: Any = None, version: str = "2.96", by: Any = None) -> Any:
    """The answer to an action."""
    return (by or cloud.member).compute.post(f"/servers/{server.id}/action", json={name: value}, microversion=version)


def lines(cloud: Cloud, server: Any) -> list[str]:
    found = cloud.driver(cloud.show(server).compute_host).guest_read(server.id)
    return [line for line in found if not line.startswith("boot=")]


def write(cloud: Cloud, server: Any, text: str) -> None:
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, text)


def check_clean(cloud: Cloud) -> None:
    assert isinstance(cloud, AuditedCloud)
    assert cloud.audit().disagreements == []


def test_a_server_is_paused_and_suspended_and_resumed(cloud: Cloud) -> None:
    server = cloud.boot()
    boots = cloud.driver(cloud.show(server).compute_host).guest_read(server.id)
    for action, status, power_state in (
        ("pause", "PAUSED", 3),
        ("unpause", "ACTIVE", 1),
        ("suspend", "SUSPENDED", 4),
        ("resume", "ACTIVE", 1),
    ):
        assert act(cloud, server, action).status_code == 202
        assert cloud.wait(server, status).power_state == power_state
        assert cloud.events(server, action) == [(f"compute_{action}_instance", "Success")]
    assert cloud.driver(cloud.show(server).compute_host).guest_read(server.id) == boots
    check_clean(cloud)


@pytest.mark.parametrize(
    ("action", "value"),
    [
        ("pause", None),
        ("suspend", None),
        ("shelve", None),
        ("createImage", {"name": "image"}),
        ("rebuild", {"imageRef": "IMAGE"}),
        ("evacuate", {}),
        ("shelveOffload", None),
        ("unshelve", None),
    ],
)
def test_what_is_refused_while_a_resize_waits_for_its_end(cloud: Cloud, action: str, value: Any) -> None:
    server = cloud.boot()
    cloud.resized(server)
    before = cloud.reality(server)
    given = {"imageRef": cloud.image_id} if action == "rebuild" else value
    answer = act(cloud, server, action, given, by=cloud.admin)
    assert answer.status_code == 409
    assert "vm_state resized" in answer.json()["conflictingRequest"]["message"]
    assert cloud.reality(server) == before
    assert cloud.confirmed(server).status == "ACTIVE"


def test_rebuild_makes_the_guest_anew_with_what_was_asked_for(cloud: Cloud) -> None:
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)
    before = cloud.reality(server)
    write(cloud, server, "mine")
    answer = act(
        cloud,
        server,
        "rebuild",
        {"imageRef": cloud.image_id, "name": "new", "metadata": {"a": "b"}, "description": "anew"},
    )
    assert answer.status_code == 202
    shown = answer.json()["server"]
    assert (shown["status"], shown["name"], shown["description"]) == ("REBUILD", "new", "anew")
    assert shown["adminPass"] and answer.headers["Location"].endswith(server.id)
    found = cloud.wait(server, "ACTIVE")
    assert (found.name, found.metadata) == ("new", {"a": "b"})
    assert lines(cloud, server) == []
    assert cloud.reality(server) == before
    assert cloud.events(server, "rebuild") == [("compute_rebuild_instance", "Success")]
    check_clean(cloud)


@pytest.mark.parametrize(("version", "is_whole"), [("2.74", False), ("2.75", True)])
def test_rebuild_answers_with_the_whole_server_from_2_75_on(cloud: Cloud, version: str, is_whole: bool) -> None:
    server = cloud.boot()
    shown = act(cloud, server, "rebuild", {"imageRef": cloud.image_id}, version).json()["server"]
    cloud.wait(server, "ACTIVE")
    assert {"OS-EXT-STS:vm_state" in shown, "config_drive" in shown, "security_groups" in shown} == {is_whole}
    assert "user_data" in shown and "OS-EXT-SRV-ATTR:user_data" not in shown


def test_a_server_that_was_off_is_off_after_its_rebuild(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    act(cloud, server, "rebuild", {"imageRef": cloud.image_id})
    cloud.wait(server, "SHUTOFF")
    check_clean(cloud)


def test_rebuild_ends_an_error_that_a_move_left(cloud: Cloud) -> None:
    server = cloud.boot()
    act(cloud, server, "os-resetState", {"state": "error"}, by=cloud.admin)
    assert cloud.show(server).status == "ERROR"
    act(cloud, server, "rebuild", {"imageRef": cloud.image_id})
    until(lambda: cloud.show(server), lambda found: found.status == "ACTIVE", "the server to be rebuilt")
    assert cloud.confirmed(cloud.resized(server)).status == "ACTIVE"
    check_clean(cloud)


def test_hard_reboot_ends_an_error(cloud: Cloud) -> None:
    server = cloud.boot()
    act(cloud, server, "os-resetState", {"state": "error"}, by=cloud.admin)
    cloud.member.compute.reboot_server(server.id, "HARD")
    until(lambda: cloud.show(server), lambda found: found.status == "ACTIVE", "the server to be rebooted")
    check_clean(cloud)


def test_a_rebuild_without_its_image_is_refused_or_fails_and_can_be_repeated(cloud: Cloud) -> None:
    server = cloud.boot()
    for reference in ("a0000000-0000-0000-0000-000000000000", "nothing"):
        answer = act(cloud, server, "rebuild", {"imageRef": reference})
        assert answer.status_code == 400
    assert cloud.show(server).status == "ACTIVE"


def test_rebuild_of_a_volume_backed_server_keeps_its_volume(cloud: Cloud) -> None:
    server = cloud.boot_from_volume()
    write(cloud, server, "mine")
    answer = act(cloud, server, "rebuild", {"imageRef": cloud.image_id}, version="2.92")
    assert answer.status_code == 202
    cloud.wait(server, "ACTIVE")
    assert lines(cloud, server) == ["mine"]
    check_clean(cloud)


def test_an_image_of_a_running_server_has_its_disk(cloud: Cloud) -> None:
    server = cloud.boot()
    write(cloud, server, "mine")
    answer = act(cloud, server, "createImage", {"name": "copy", "metadata": {"kept": "yes"}})
    assert answer.status_code == 202
    image_id = answer.json()["image_id"]
    cloud.wait(server, "ACTIVE")
    image = cloud.admin.image.get_image(image_id)
    assert (image.status, image.name, image.properties["kept"]) == ("active", "copy", "yes")
    assert cloud.events(server, "createImage") == [("compute_snapshot_instance", "Success")]
    twin = cloud.boot("twin", image_id=image_id)
    assert lines(cloud, twin) == ["mine"]
    write(cloud, server, "still here")
    assert lines(cloud, server) == ["mine", "still here"]
    check_clean(cloud)
    cloud.admin.image.delete_image(image_id)


def test_a_guest_runs_on_while_its_image_is_made(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()

    def pause(*_: Any) -> None:
        raise AssertionError("the guest was paused")

    monkeypatch.setattr(SimulatedDriver, "pause", pause)
    image_id = act(cloud, server, "createImage", {"name": "copy"}).json()["image_id"]
    until(lambda: cloud.admin.image.get_image(image_id).status, lambda status: status == "active", "the image")
    cloud.wait(server, "ACTIVE")
    assert cloud.events(server, "createImage") == [("compute_snapshot_instance", "Success")]
    cloud.admin.image.delete_image(image_id)


def test_an_image_that_fails_leaves_the_server_as_it_was(cloud: Cloud) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    cloud.fail("status", "/file$", service="image", method="PUT", status=413)
    image_id = act(cloud, server, "createImage", {"name": "copy"}).json()["image_id"]
    cloud.wait(server, "ACTIVE")
    assert cloud.reality(server) == before
    assert cloud.events(server, "createImage") == [("compute_snapshot_instance", "Error")]
    assert cloud.admin.image.find_image(image_id) is None


def shelved_images(cloud: Cloud) -> list[str]:
    return [image.name for image in cloud.admin.image.images() if image.name.endswith("-shelved")]


@pytest.mark.parametrize("kind", ["image", "volume"])
def test_shelve_releases_the_host_and_unshelve_restores_everything(cloud: Cloud, kind: str) -> None:
    server = cloud.boot() if kind == "image" else cloud.boot_from_volume()
    volume = cloud.volume()
    cloud.attach(server, volume)
    write(cloud, server, "mine")
    assert act(cloud, server, "shelve").status_code == 202
    found = cloud.wait(server, "SHELVED_OFFLOADED")
    assert found.compute_host is None
    assert (cloud.hosts_of(server), cloud.allocations(server.id)) == ({}, {})
    assert {each["status"] for each in cloud.attachments(server)} == {"reserved"}
    assert shelved_images(cloud) == (["server-shelved"] if kind == "image" else [])
    check_clean(cloud)
    # The network service needs its time, and its message must find the host that waits for it.
    cloud.parts.devcloud.plug_delay = 0.5
    assert act(cloud, server, "unshelve").status_code == 202
    cloud.wait(server, "ACTIVE")
    assert lines(cloud, server) == ["mine"]
    until(lambda: shelved_images(cloud), lambda left: left == [], "the image to go")
    assert {each["status"] for each in cloud.attachments(server)} == {"attached"}
    assert cloud.actions(server)[-2:] == ["shelve", "unshelve"]
    check_clean(cloud)
    assert cloud.confirmed(cloud.resized(server)).status == "ACTIVE"
    assert lines(cloud, server) == ["mine"]


def test_shelved_but_not_offloaded_until_somebody_asks(cloud: Cloud) -> None:
    cloud.option("shelved_offload_time", -1)
    server = cloud.boot()
    host = cloud.show(server).compute_host
    act(cloud, server, "shelve")
    assert cloud.wait(server, "SHELVED").compute_host == host
    check_clean(cloud)
    act(cloud, server, "unshelve")
    assert cloud.wait(server, "ACTIVE").compute_host == host
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED")
    assert act(cloud, server, "shelveOffload").status_code == 403
    assert act(cloud, server, "shelveOffload", by=cloud.admin).status_code == 202
    cloud.wait(server, "SHELVED_OFFLOADED")
    check_clean(cloud)


@pytest.mark.embedded("does what a conductor does, when the test says so")
def test_a_server_that_was_shelved_for_long_enough_is_offloaded(cloud: Cloud) -> None:
    cloud.option("shelved_offload_time", 3600)
    server = cloud.boot()
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED")
    conductor = cloud.parts.conductor
    auto_offload.offload_shelved(conductor._services, conductor._conductor)
    assert cloud.wait(server, "SHELVED").compute_host is not None
    cloud.option("shelved_offload_time", 0)
    auto_offload.offload_shelved(conductor._services, conductor._conductor)
    assert cloud.wait(server, "SHELVED_OFFLOADED").compute_host is None
    assert cloud.admin.compute.get(f"/servers/{server.id}/os-instance-actions").json()["instanceActions"][0][
        "action"
    ] == ("shelveOffload")
    check_clean(cloud)


def test_an_administrator_names_the_host_of_an_unshelve(cloud: Cloud) -> None:
    server = cloud.boot()
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED_OFFLOADED")
    assert act(cloud, server, "unshelve", {"host": "cell1-host2"}).status_code == 403
    assert act(cloud, server, "unshelve", {"host": "nowhere"}, by=cloud.admin).status_code == 400
    assert act(cloud, server, "unshelve", {"availability_zone": "nowhere"}).status_code == 400
    assert act(cloud, server, "unshelve", {"host": "cell1-host2"}, by=cloud.admin).status_code == 202
    assert cloud.wait(server, "ACTIVE").compute_host == "cell1-host2"
    check_clean(cloud)


def test_a_shelved_server_is_not_resized_and_leaves_nothing_when_deleted(cloud: Cloud) -> None:
    server = cloud.boot()
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED_OFFLOADED")
    with pytest.raises(openstack.exceptions.ConflictException, match="shelved_offloaded"):
        cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert shelved_images(cloud) == []
    assert list(cloud.admin.network.ports(device_id=server.id)) == []
    check_clean(cloud)


def test_an_unshelve_that_fits_nowhere_leaves_the_server_shelved(cloud: Cloud) -> None:
    server = cloud.boot()
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.fail("status", "/file$", service="image", method="GET", status=404)
    act(cloud, server, "unshelve")
    until(lambda: cloud.events(server, "unshelve"), lambda found: len(found) == 2, "the unshelve to fail")
    cloud.wait(server, "SHELVED_OFFLOADED")
    assert cloud.events(server, "unshelve")[-1] == ("compute_unshelve_instance", "Error")
    assert (cloud.hosts_of(server), cloud.allocations(server.id)) == ({}, {})
    check_clean(cloud)
    cloud.heal()
    act(cloud, server, "unshelve")
    cloud.wait(server, "ACTIVE")
    check_clean(cloud)


def test_a_volume_is_attached_to_an_offloaded_server_and_comes_with_it(cloud: Cloud) -> None:
    """There is no host to connect it to; it is in use all the same, and the guest has it when it is restored."""
    server, volume = cloud.boot(), cloud.volume()
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.attach(server, volume)
    assert cloud.volume_becomes(volume, "in-use").status == "in-use"
    check_clean(cloud)
    act(cloud, server, "unshelve")
    cloud.wait(server, "ACTIVE")
    assert {each["status"] for each in cloud.attachments(server)} == {"attached"}
    check_clean(cloud)
    cloud.detach(server, volume)
    assert cloud.volume_becomes(volume, "available").status == "available"
