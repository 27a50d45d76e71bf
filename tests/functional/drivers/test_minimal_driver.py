"""A driver with only what is required: servers are built, moved and deleted; what it can't do is said, and is no 500."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("all hosts have another driver")

LATEST = "2.96"


@pytest.fixture
def server(cloud: Cloud) -> Any:
    return cloud.boot()


def act(cloud: Cloud, server: Any, action: str, value: Any = None) -> Any:
    return cloud.admin.compute.post(f"/servers/{server.id}/action", json={action: value}, microversion=LATEST)


def message(answer: Any) -> str:
    (fault,) = answer.json().values()
    assert fault["code"] == answer.status_code
    return str(fault["message"])


def driver_of(cloud: Cloud, server: Any) -> Any:
    return cloud.embedded.computes[cloud.show(server).compute_host].host.driver


def simulated(cloud: Cloud, server: Any) -> Any:
    return driver_of(cloud, server).simulated


def why(cloud: Cloud, server: Any, action: str) -> str:
    """What the history of a server says of an action that failed; the server is as it was."""
    until(lambda: cloud.show(server), lambda found: found.task_state is None, f"{action} to end")
    cloud.settle()
    assert cloud.show(server).status == "ACTIVE"
    found = cloud.action(server, action)
    assert "Error" in [event["result"] for event in found.events]
    return f"{found.message} {[event.get('details') for event in found.events]}"


# what a server needs to live and to move


@pytest.mark.parametrize("flavor", ["any.medium", "gen2.small"])
@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_server_is_built_moved_and_deleted(cloud: Cloud, flavor: str, end: str) -> None:
    server = cloud.boot(flavor="any.small" if flavor == "any.medium" else "gen1.small")
    simulated(cloud, server).guest_write(server.id, "precious")
    source = cloud.show(server).compute_host
    moved = cloud.resized(server, flavor)
    assert moved.compute_host != source
    assert "precious" in simulated(cloud, server).guest_read(server.id)
    after = cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)
    assert (after.status, after.compute_host == source) == ("ACTIVE", end == "revert")
    driver = simulated(cloud, server)
    assert "precious" in driver.guest_read(server.id)
    cloud.clean()
    assert all(
        not host.host.driver.list_disks() and not host.host.driver.list_guests()
        for host in cloud.embedded.computes.values()
    )


def test_a_server_is_stopped_started_and_rebooted(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    for kind in ("SOFT", "HARD"):
        cloud.member.compute.reboot_server(server.id, kind)
        cloud.wait(server, "ACTIVE")
    assert [line.split(",")[0] for line in simulated(cloud, server).guest_read(server.id)][-1] == "boot=4"


def test_a_server_is_shelved_and_comes_back(cloud: Cloud, server: Any) -> None:
    simulated(cloud, server).guest_write(server.id, "precious")
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.member.compute.unshelve_server(server.id)
    cloud.wait(server, "ACTIVE")
    assert "precious" in simulated(cloud, server).guest_read(server.id)


# what it can't do


@pytest.mark.parametrize(
    ("action", "body", "named", "reason"),
    [
        ("pause", None, "pause", "can't pause guests"),
        ("suspend", None, "suspend", "can't suspend guests"),
        ("rescue", {}, "rescue", "can't rescue guests"),
        ("createImage", {"name": "picture"}, "createImage", "can't copy a disk while its guest runs"),
        (
            "createBackup",
            {"name": "backup", "backup_type": "daily", "rotation": 1},
            "createBackup",
            "can't copy a disk while its guest runs",
        ),
        ("trigger_crash_dump", None, "trigger_crash_dump", "can't trigger crash dumps"),
        ("os-guestTrim", None, "guest_trim", "can't trim guests"),
        (
            "os-migrateLive",
            {"host": None, "block_migration": "auto"},
            "live-migration",
            "does not migrate guests live",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_an_accepted_action_fails_and_says_why(
    cloud: Cloud, server: Any, action: str, body: Any, named: str, reason: str
) -> None:
    assert act(cloud, server, action, body).status_code in (200, 202)
    assert reason in why(cloud, server, named)
    assert driver_of(cloud, server).list_guests()[server.id].name == "RUNNING"


def test_what_its_guests_are_asked_for_is_not_implemented(cloud: Cloud, server: Any) -> None:
    answers = {
        "show the console output": act(cloud, server, "os-getConsoleOutput", {}),
        "set passwords": act(cloud, server, "changePassword", {"adminPass": "a-new-password"}),
        "give diagnostics": cloud.admin.compute.get(f"/servers/{server.id}/diagnostics", microversion=LATEST),
    }
    for operation, answer in answers.items():
        assert (answer.status_code, f"can't {operation}" in message(answer)) == (501, True), answer.text


def test_there_are_no_consoles(cloud: Cloud, server: Any) -> None:
    wanted = {"remote_console": {"protocol": "serial", "type": "serial"}}
    answer = cloud.member.compute.post(f"/servers/{server.id}/remote-consoles", json=wanted, microversion=LATEST)
    assert (answer.status_code, "has no such consoles" in message(answer)) == (400, True)


def test_a_volume_that_can_not_be_attached_stays_its_owners(cloud: Cloud, server: Any) -> None:
    volume = cloud.volume()
    wanted = {"volumeAttachment": {"volumeId": volume.id}}
    answer = cloud.member.compute.post(f"/servers/{server.id}/os-volume_attachments", json=wanted, microversion=LATEST)
    assert (answer.status_code, "can't connect volumes" in message(answer)) == (501, True)
    assert "can't connect volumes" in why(cloud, server, "attach_volume")
    assert cloud.volume_becomes(volume, "available").status == "available"
    assert list(cloud.member.compute.volume_attachments(server.id)) == []


def test_a_server_on_a_volume_is_not_built_and_says_why(cloud: Cloud) -> None:
    with pytest.raises(AssertionError, match="can't connect volumes"):
        cloud.boot_from_volume()


def test_ports_stay_as_they_are(cloud: Cloud, server: Any) -> None:
    wanted = {"interfaceAttachment": {"net_id": cloud.network_id}}
    answer = cloud.member.compute.post(f"/servers/{server.id}/os-interface", json=wanted, microversion=LATEST)
    assert (answer.status_code, "can't attach ports" in message(answer)) == (501, True)
    assert "can't attach ports" in why(cloud, server, "attach_interface")
    (port,) = cloud.member.compute.server_interfaces(server.id)
    answer = cloud.member.compute.delete(f"/servers/{server.id}/os-interface/{port.port_id}", microversion=LATEST)
    assert answer.status_code == 202
    assert "can't detach ports" in why(cloud, server, "detach_interface")
    assert [each.port_id for each in cloud.member.compute.server_interfaces(server.id)] == [port.port_id]
    assert len(cloud.ports(server)) == 1
