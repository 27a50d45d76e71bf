"""Operations during which a guest stays the process that Nova started. One server is used for all, and left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from tests.functional.processes.own_process import until
from tests.integration.adopt import outside
from tests.integration.adopt.answers import PATIENCE, await_status, shown, without
from tests.integration.adopt.operations.taken import TakenCloud, tries

pytestmark = pytest.mark.timeout(900)

# The answers of what needs an agent in the guest, which these have not.
AGENT_MISSING = {400, 409, 501}


@pytest.fixture
def uuid(taken: TakenCloud) -> Iterator[str]:
    """Its guest is the same process after the test, counts on, and has its ports."""
    uuid = taken.server("untouched")
    before, state = outside.guest_of(taken.cloud, uuid), taken.state(uuid)
    yield uuid
    outside.check_same_runs([before], [outside.guest_of(taken.cloud, uuid)])
    taken.check_runs_on(uuid, state)
    outside.check_ticks(taken.cloud, uuid)


@tries(
    "GET ",
    "GET /metadata",
    "GET /tags",
    "GET /os-instance-actions",
    "GET /os-volume_attachments",
    "GET /os-interface",
    "GET /os-security-groups",
    "GET /ips",
    "GET /topology",
    "GET /migrations",
)
def test_what_nova_knew_is_shown(taken: TakenCloud, uuid: str) -> None:
    """Nova's own records are as they were when its hosts were taken."""
    with closing(taken.cloud.nova.connection("demo")) as theirs:
        assert shown(taken.adopted.member, uuid) == shown(theirs, uuid)
        for path in ("metadata", "tags", "os-volume_attachments", "ips"):
            answer = theirs.compute.get(f"/servers/{uuid}/{path}")
            assert taken.call("GET", f"/servers/{uuid}/{path}") == answer.json(), path
        ports = theirs.compute.get(f"/servers/{uuid}/os-interface").json()
        assert by_port(taken.call("GET", f"/servers/{uuid}/os-interface")) == by_port(ports)
        groups = theirs.compute.get(f"/servers/{uuid}/os-security-groups").json()
        assert by_group(taken.call("GET", f"/servers/{uuid}/os-security-groups")) == by_group(groups)
    with closing(taken.cloud.nova.connection()) as theirs:
        for path in ("topology", "migrations", "os-instance-actions"):
            known = without(theirs.compute.get(f"/servers/{uuid}/{path}").json(), {"links"})
            assert without(taken.call("GET", f"/servers/{uuid}/{path}", admin=True), {"links"}) == known, path


def by_port(answer: Any) -> dict[str, Any]:
    """Neutron gives them in any order."""
    return {port["port_id"]: port for port in answer["interfaceAttachments"]}


def by_group(answer: Any) -> dict[str, set[str]]:
    """With their rules, in any order. Nova lists a group once for each port that is in it, Causeway once."""
    return {group["id"]: {rule["id"] for rule in group["rules"]} for group in answer["security_groups"]}


@tries(
    "GET /os-instance-actions/{request_id}", "GET /ips/{network_label}", "GET /diagnostics", "GET /os-server-password"
)
def test_details_are_shown(taken: TakenCloud, uuid: str) -> None:
    created = taken.call("GET", f"/servers/{uuid}/os-instance-actions")["instanceActions"][-1]
    assert created["action"] == "create"
    with closing(taken.cloud.nova.connection()) as theirs:
        path = f"/servers/{uuid}/os-instance-actions/{created['request_id']}"
        known = theirs.compute.get(path).json()
    assert taken.call("GET", path, admin=True) == known
    assert len(taken.call("GET", f"/servers/{uuid}/ips/net")["net"]) == 1
    found = taken.call("GET", f"/servers/{uuid}/diagnostics", admin=True)
    assert (found["state"], found["num_cpus"], found["num_nics"], found["num_disks"]) == ("running", 1, 2, 3)
    assert taken.call("GET", f"/servers/{uuid}/os-server-password") == {"password": ""}


@tries("os-getConsoleOutput", "POST /remote-consoles")
def test_the_console_is_shown(taken: TakenCloud, uuid: str) -> None:
    assert "TICK n=" in taken.act(uuid, "os-getConsoleOutput", {"length": 3})["output"]
    wanted = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    assert taken.call("POST", f"/servers/{uuid}/remote-consoles", wanted)["remote_console"]["url"]


@tries("pause", "unpause")
def test_the_guest_stands_still_and_runs_again(taken: TakenCloud, uuid: str) -> None:
    taken.act(uuid, "pause", status="PAUSED")
    assert outside.guest_of(taken.cloud, uuid).is_paused
    taken.act(uuid, "unpause", status="ACTIVE")


@tries(
    "PUT ",
    "POST /metadata",
    "PUT /metadata",
    "GET /metadata/{key}",
    "PUT /metadata/{key}",
    "DELETE /metadata/{key}",
    "PUT /tags",
    "DELETE /tags",
    "GET /tags/{tag}",
    "PUT /tags/{tag}",
    "DELETE /tags/{tag}",
)
def test_names_metadata_and_tags_are_changed(taken: TakenCloud, uuid: str) -> None:
    server = f"/servers/{uuid}"
    name = taken.call("GET", server)["server"]["name"]
    for each in ("another", name):
        assert taken.call("PUT", server, {"server": {"name": each}})["server"]["name"] == each
    taken.call("PUT", f"{server}/metadata", {"metadata": {"one": "1"}})
    taken.call("POST", f"{server}/metadata", {"metadata": {"two": "2"}})
    taken.call("PUT", f"{server}/metadata/one", {"meta": {"one": "first"}})
    assert taken.call("GET", f"{server}/metadata/one") == {"meta": {"one": "first"}}
    for key in ("one", "two"):
        taken.call("DELETE", f"{server}/metadata/{key}")
    assert taken.call("GET", f"{server}/metadata") == {"metadata": {}}
    taken.call("PUT", f"{server}/tags", {"tags": ["one"]})
    taken.call("PUT", f"{server}/tags/two")
    taken.call("GET", f"{server}/tags/two")
    taken.call("DELETE", f"{server}/tags/one")
    assert taken.call("GET", f"{server}/tags") == {"tags": ["two"]}
    taken.call("DELETE", f"{server}/tags")


@tries("lock", "unlock", "os-resetState")
def test_states_of_records_are_changed(taken: TakenCloud, uuid: str) -> None:
    taken.act(uuid, "lock", {"locked_reason": "here"})
    assert taken.ask("POST", f"/servers/{uuid}/action", {"pause": None}).status_code == 409
    taken.act(uuid, "unlock", admin=True)
    taken.act(uuid, "os-resetState", {"state": "error"}, admin=True)
    assert taken.call("GET", f"/servers/{uuid}")["server"]["status"] == "ERROR"
    taken.act(uuid, "os-resetState", {"state": "active"}, admin=True)
    assert taken.call("GET", f"/servers/{uuid}")["server"]["status"] == "ACTIVE"


@tries(
    "POST /os-volume_attachments",
    "GET /os-volume_attachments/{volume_id}",
    "PUT /os-volume_attachments/{volume_id}",
    "DELETE /os-volume_attachments/{volume_id}",
)
def test_a_volume_that_nova_attached_is_detached_attached_and_changed(taken: TakenCloud, uuid: str) -> None:
    path, nova_made = f"/servers/{uuid}/os-volume_attachments", taken.volume("untouched")
    content = outside.digest(outside.volume_file(taken.cloud, nova_made))
    assert taken.call("GET", f"{path}/{nova_made}")["volumeAttachment"]["volumeId"] == nova_made
    detach(taken, path, nova_made)
    assert outside.digest(outside.volume_file(taken.cloud, nova_made)) == content

    attach(taken, path, nova_made)
    keep = {"volumeAttachment": {"volumeId": nova_made, "delete_on_termination": True}}
    taken.call("PUT", f"{path}/{nova_made}", keep, admin=True)
    assert taken.call("GET", f"{path}/{nova_made}")["volumeAttachment"]["delete_on_termination"]
    # Another volume is put in the place of one only for Cinder, while it migrates the volume.
    other = taken.populator.volume(name="other").id
    swap = taken.ask("PUT", f"{path}/{nova_made}", {"volumeAttachment": {"volumeId": other}}, admin=True)
    assert swap.status_code == 409 and "not migrating" in swap.text


def attach(taken: TakenCloud, path: str, volume: str) -> None:
    taken.call("POST", path, {"volumeAttachment": {"volumeId": volume}})
    taken.populator.await_volume(volume, "in-use")


def detach(taken: TakenCloud, path: str, volume: str) -> None:
    taken.call("DELETE", f"{path}/{volume}")
    taken.populator.await_volume(volume, "available")


@tries("POST /os-interface", "GET /os-interface/{port_id}", "DELETE /os-interface/{port_id}")
def test_ports_are_attached_and_detached(taken: TakenCloud, uuid: str) -> None:
    path, had = f"/servers/{uuid}/os-interface", set(taken.adopted.ports(uuid))
    wanted = {"interfaceAttachment": {"net_id": taken.populator.network}}
    made = taken.call("POST", path, wanted)["interfaceAttachment"]["port_id"]
    until(lambda: taken.adopted.ports(uuid)[made][2], "ACTIVE".__eq__, f"port {made} to be up", PATIENCE)
    assert taken.call("GET", f"{path}/{made}")["interfaceAttachment"]["port_id"] == made
    assert interfaces(taken, uuid) == len(had) + 1
    taken.call("DELETE", f"{path}/{made}")
    until(lambda: set(taken.adopted.ports(uuid)), had.__eq__, f"port {made} to be gone", PATIENCE)
    assert interfaces(taken, uuid) == len(had)


def interfaces(taken: TakenCloud, uuid: str) -> int:
    """How many interfaces the guest has."""
    return outside.guest_of(taken.cloud, uuid).definition.count("<interface ")


@tries("addSecurityGroup", "removeSecurityGroup")
def test_security_groups_are_added_and_removed(taken: TakenCloud, uuid: str) -> None:
    network = taken.adopted.member.network
    group = network.create_security_group(name="more")
    for action, count in (("addSecurityGroup", 2), ("removeSecurityGroup", 0)):
        taken.act(uuid, action, {"name": group.id})
        members = [port for port in network.ports(device_id=uuid) if group.id in port.security_group_ids]
        assert len(members) == count
    network.delete_security_group(group)


@tries("createImage", "createBackup")
def test_images_are_made_of_the_running_guest(taken: TakenCloud, uuid: str) -> None:
    image = taken.adopted.member.image
    for action, more in (("createImage", {}), ("createBackup", {"backup_type": "daily", "rotation": 1})):
        made = taken.act(uuid, action, {"name": "made", **more})["image_id"]
        found: Any = until(partial(image.get_image, made), is_active, f"image {made}", PATIENCE)
        assert found.size > 1 << 20
        await_status(taken.adopted.admin, uuid, "ACTIVE")
        image.delete_image(made)


def is_active(image: Any) -> bool:
    return bool(image.status == "active")


@tries("changePassword", "os-guestTrim", "trigger_crash_dump", "DELETE /os-server-password")
def test_what_needs_help_of_the_guest_says_what_it_lacks(taken: TakenCloud, uuid: str) -> None:
    answer = taken.ask("POST", f"/servers/{uuid}/action", {"changePassword": {"adminPass": "x" * 12}}, admin=True)
    assert answer.status_code in AGENT_MISSING and "agent" in answer.text.lower(), answer.text
    taken.act(uuid, "os-guestTrim", admin=True)
    path = f"/servers/{uuid}/os-instance-actions"
    until(
        lambda: taken.call("GET", path, admin=True)["instanceActions"][0]["message"],
        "Error".__eq__,
        f"{uuid} to have no agent that trims it",
        PATIENCE,
    )
    # The kernel is sent an NMI, which it notes only.
    taken.act(uuid, "trigger_crash_dump", admin=True)
    taken.call("DELETE", f"/servers/{uuid}/os-server-password")


@tries("injectNetworkInfo")
def test_what_does_nothing_in_nova_does_nothing_here(taken: TakenCloud, uuid: str) -> None:
    taken.act(uuid, "injectNetworkInfo", {}, admin=True)
