"""Images of running servers, whose file systems an agent in the guest keeps still at the instant of the copy."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from causeway.virt.simulated import agent
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.warm.test_warm_agents import mute, server_with

pytestmark = pytest.mark.embedded("looks into guests, and breaks their agents")

AGENT = {"hw_qemu_guest_agent": "yes"}
REQUIRED = {"os_require_quiesce": "yes"}
ACTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "createImage": ({"name": "copy"}, "compute_snapshot_instance"),
    "createBackup": ({"name": "copy", "backup_type": "daily", "rotation": 1}, "compute_backup_instance"),
}


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> Cloud:
    return AuditedCloud(embedded)


def ask(cloud: Cloud, server: Any, action: str) -> str:
    """Returns the id of the image, when the request has come to its end."""
    body = {action: ACTIONS[action][0]}
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json=body, microversion="2.96")
    assert answer.status_code == 202, answer.text
    until(lambda: cloud.show(server).task_state, lambda task: task is None, "the end")
    return str(answer.json()["image_id"])


def check_made(cloud: Cloud, server: Any, action: str) -> None:
    image = cloud.admin.image.get_image(ask(cloud, server, action))
    assert image.status == "active"
    assert cloud.events(server, action) == [(ACTIONS[action][1], "Success")]
    cloud.admin.image.delete_image(image)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("properties", [REQUIRED, REQUIRED | AGENT], ids=["none", "mute"])
def test_without_an_agent_that_answers_there_is_no_image_if_it_requires_one(
    cloud: Cloud, properties: dict[str, str], action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "freeze", mute)
    server = server_with(cloud, **properties)
    before = cloud.reality(server)
    image_id = ask(cloud, server, action)
    assert cloud.admin.image.find_image(image_id) is None
    shown = cloud.show(server)
    assert (shown.status, shown.fault) == ("ACTIVE", None)
    assert cloud.reality(server) == before
    assert cloud.events(server, action) == [(ACTIONS[action][1], "Error")]
    said = cloud.action(server, action).message
    assert "os_require_quiesce" in said and "when it is off" in said
    assert isinstance(cloud, AuditedCloud)
    assert cloud.audit().is_clean


@pytest.mark.parametrize("action", ACTIONS)
def test_a_server_that_is_off_needs_no_agent_for_it(cloud: Cloud, action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "freeze", mute)
    server = server_with(cloud, **REQUIRED, **AGENT)
    cloud.member.compute.stop_server(server)
    cloud.wait(server, "SHUTOFF")
    check_made(cloud, server, action)


@pytest.mark.parametrize("properties", [{}, AGENT], ids=["none", "mute"])
def test_an_image_that_requires_no_agent_is_made_without_one(
    cloud: Cloud, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "freeze", mute)
    check_made(cloud, server_with(cloud, **properties), "createImage")


@pytest.mark.parametrize("action", ACTIONS)
def test_an_agent_that_answers_keeps_the_file_systems_still(cloud: Cloud, action: str) -> None:
    server = server_with(cloud, **REQUIRED, **AGENT)
    check_made(cloud, server, action)
    guest = cloud.driver(server.compute_host).files.guests[server.id]
    assert (guest.freezes, guest.is_frozen) == (1, False)
