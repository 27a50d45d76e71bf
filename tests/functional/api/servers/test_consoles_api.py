"""URLs of consoles, by microversion: what may be asked for, by whom, in which states, and what the answer is."""

from __future__ import annotations

import uuid as uuids
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from causeway import errors
from causeway.model.console import ConsoleAddress, ConsolePlace, ConsoleType
from causeway.model.instance import Instance
from causeway.model.states import TaskState, VmState
from causeway.store.api import console_tokens
from causeway.store.cell import instances

NOBODYS = "99999999-2222-3333-4444-555555555555"
BASE = "https://consoles.example:6080/vnc_lite.html?autoconnect=true"


def wanted(protocol: str = "vnc", kind: str = "novnc") -> dict[str, Any]:
    return {"remote_console": {"protocol": protocol, "type": kind}}


@pytest.fixture
def path(server: Instance, conductor: Any) -> str:
    place = ConsolePlace(ConsoleAddress("192.0.2.7", 5901, BASE), str(uuids.uuid4()), "host1")
    conductor.answers["get_console"] = place
    return f"/servers/{server.uuid}/remote-consoles"


@pytest.mark.parametrize("version", ["2.6", "2.7", "2.8", "2.98", "2.99", "2.104"])
def test_the_answer_to_a_new_console_is_its_url_protocol_and_type(
    api: Any, conductor: Any, server: Instance, path: str, version: str
) -> None:
    answer = api.post(path, wanted(), version=version)
    assert answer.status == 200
    shown = answer.json["remote_console"]
    assert (set(shown), shown["protocol"], shown["type"]) == ({"protocol", "type", "url"}, "vnc", "novnc")
    assert conductor.calls[-1] == (
        "get_console",
        {"args": conductor.calls[-1][1]["args"], "instance_uuid": server.uuid, "console_type": ConsoleType.NOVNC},
    )


def test_the_token_is_in_the_path_that_novnc_opens(api: Any, cloud: Any, server: Instance, path: str) -> None:
    parts = urlsplit(api.post(path, wanted(), version="2.6").json["remote_console"]["url"])
    query = parse_qs(parts.query)
    assert (f"{parts.scheme}://{parts.netloc}{parts.path}") == BASE.partition("?")[0]
    assert query["autoconnect"] == ["true"]
    (token,) = parse_qs(urlsplit(query["path"][0]).query)["token"]
    found = console_tokens.find(cloud.services.api, token)
    assert found is not None
    opened, seconds = found
    assert (opened.instance_uuid, opened.host, opened.port) == (server.uuid, "192.0.2.7", 5901)
    assert (opened.console_type, opened.compute_host, opened.access_url_base) == (ConsoleType.NOVNC, "host1", BASE)
    assert 0 < seconds <= 600


def test_a_serial_console_has_it_in_its_own_url(api: Any, conductor: Any, path: str) -> None:
    conductor.answers["get_console"].address.access_url_base = "wss://consoles.example/"
    shown = api.post(path, wanted("serial", "serial"), version="2.6").json["remote_console"]
    assert shown["url"].startswith("wss://consoles.example/?token=")


@pytest.mark.parametrize(
    ("version", "protocol", "kind", "status"),
    [
        ("2.5", "vnc", "novnc", 404),
        ("2.6", "vnc", "novnc", 404),
        ("2.6", "mks", "webmks", 400),
        ("2.8", "mks", "webmks", 404),
        ("2.98", "spice", "spice-direct", 400),
        ("2.99", "spice", "spice-direct", 404),
        ("2.6", "rdp", "rdp-html5", 400),
        ("2.104", "carrier", "pigeon", 400),
    ],
)
def test_a_server_that_is_not_there(api: Any, version: str, protocol: str, kind: str, status: int) -> None:
    """The body is looked at first."""
    assert api.post(f"/servers/{NOBODYS}/remote-consoles", wanted(protocol, kind), version=version).status == status


def test_bad_bodies_are_refused(api: Any, path: str) -> None:
    for body in (
        {},
        {"remote_console": None},
        {"remote_console": {"protocol": "vnc"}},
        {"remote_console": {"type": "novnc"}},
        {"remote_console": {"protocol": "vnc", "type": "novnc", "colour": "red"}},
        wanted() | {"more": 1},
    ):
        assert api.post(path, body, version="2.104").status == 400, body


@pytest.mark.parametrize("last", ["2.1", "2.5"])
def test_the_actions_of_before_2_6_answer_until_then(api: Any, path: str, last: str) -> None:
    action = path.replace("remote-consoles", "action")
    shown = api.post(action, {"os-getVNCConsole": {"type": "novnc"}}, version=last).json["console"]
    assert (set(shown), shown["type"]) == ({"type", "url"}, "novnc")
    assert api.post(action, {"os-getSerialConsole": {"type": "serial"}}, version=last).status == 200
    for name, kind in (("os-getVNCConsole", "xvpvnc"), ("os-getSPICEConsole", "spice-html5")):
        answer = api.post(action, {name: {"type": kind}}, version=last)
        assert (answer.status, answer.message) == (400, f"Unavailable console type {kind}.")
    for name, kind in (
        ("os-getVNCConsole", "serial"),
        ("os-getSerialConsole", "novnc"),
        ("os-getSPICEConsole", "spice"),
    ):
        assert api.post(action, {name: {"type": kind}}, version=last).status == 400
    for name, kind in (("os-getVNCConsole", "novnc"), ("os-getSerialConsole", "serial")):
        assert api.post(action, {name: {"type": kind}}, version="2.6").status == 404
        assert api.post(f"/servers/{NOBODYS}/action", {name: {"type": kind}}, version=last).status == 404


def test_members_may_have_consoles_of_their_servers(api: Any, admin: Any, path: str) -> None:
    assert api.by("user:elsewhere").post(path, wanted(), version="2.6").status == 404
    assert api.by("service:project").post(path, wanted(), version="2.6").status == 403
    assert admin.post(path, wanted(), version="2.6").status == 200


def test_a_lock_keeps_nobody_from_it(api: Any, cloud: Any, server: Instance, path: str) -> None:
    instances.update(cloud.cell("cell1"), server.uuid, locked=True, locked_by="admin", vm_state=VmState.ERROR)
    assert api.post(path, wanted(), version="2.6").status == 200


@pytest.mark.parametrize("task", [TaskState.DELETING, TaskState.MIGRATING])
def test_a_server_that_is_moved_or_deleted_gets_no_console(
    api: Any, cloud: Any, server: Instance, path: str, task: TaskState
) -> None:
    instances.update(cloud.cell("cell1"), server.uuid, task_state=task)
    assert api.post(path, wanted(), version="2.6").status == 409


def test_a_server_that_is_not_there_yet(api: Any, cloud: Any, server: Instance, path: str) -> None:
    instances.update(cloud.cell("cell1"), server.uuid, vm_state=VmState.BUILDING)
    assert api.post(path, wanted(), version="2.6").status == 409
    without_host = cloud.server()
    assert api.post(f"/servers/{without_host.uuid}/remote-consoles", wanted(), version="2.6").status == 409


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (errors.ConsoleTypeUnavailable.of("novnc"), 400),
        (errors.GuestFailed("The guest does not run."), 409),
        (errors.InvalidState("no host"), 409),
        (errors.NotImplementedHere("Host host1 can't do that yet"), 501),
        (errors.ServiceFailed("The queue is gone."), 503),
    ],
)
def test_a_refusal_of_the_host_is_answered(
    api: Any, conductor: Any, path: str, failure: Exception, status: int
) -> None:
    conductor.answers["get_console"] = failure
    answer = api.post(path, wanted(), version="2.6")
    assert answer.status == status


def test_a_token_ends_after_its_time(api: Any, cloud: Any, path: str) -> None:
    cloud.services.conf.set_override("token_ttl", 0, group="consoleauth")
    url = api.post(path, wanted("vnc", "novnc"), version="2.6").json["remote_console"]["url"]
    (token,) = parse_qs(parse_qs(urlsplit(url).query)["path"][0].removeprefix("?"))["token"]
    assert console_tokens.find(cloud.services.api, token) is None
