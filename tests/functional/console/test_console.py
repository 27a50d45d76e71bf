"""The console: who may come in, what its pages show, and what its forms do."""

from __future__ import annotations

import json
import uuid as uuids
from datetime import timedelta
from typing import Any

import pytest
import requests

from causeway.model.drains import Drain, DrainRequest, DrainServer, DrainServerState, DrainState, Scope
from causeway.store.api import drains
from causeway.store.database import utcnow
from tests.functional.console.conftest import Served

PAGES = ("/", "/drains", "/operations", "/audit", "/adoption")

# The id of nothing.
NOBODY = "7d3c0f0a-6a5b-4c3e-9f51-0c2f1b9f7e11"


def drain_of(cloud: Any, server: Any, name: str = "empty cell1") -> Drain:
    """A drain of one server as it would have been planned; nobody runs it."""
    made = Drain(id=str(uuids.uuid4()), request=DrainRequest(name, Scope(cells=["cell1"])))
    row = DrainServer(drain_id=made.id, instance_uuid=server.id, name=server.name, bytes=2**30)
    row.state, row.why, row.help = DrainServerState.BLOCKED, "cell2 is full", "add a host"
    drains.create(cloud.parts.api_database, made, [row])
    return made


# who may come in


def test_the_token_opens_once(opened: Served) -> None:
    url = f"{opened.url}/enter?token={opened.sessions.token}"
    entered = opened.browser.get(url, timeout=60)
    assert entered.status_code == 200
    assert opened.browser.get(entered.url, timeout=60).status_code == 200, "who is in stays in"
    assert requests.get(url, timeout=60).status_code == 401
    assert requests.get(f"{opened.url}/enter?token=wrong", timeout=60).status_code == 401


@pytest.mark.parametrize("path", [*PAGES, "/events", "/events/drains"])
def test_who_did_not_come_in_sees_nothing(opened: Served, path: str) -> None:
    answer = requests.get(opened.url + path, timeout=60)
    assert answer.status_code == 401
    assert "cell1" not in answer.text


def test_another_name_for_this_machine_is_refused(console: Served) -> None:
    answer = console.browser.get(console.url, headers={"Host": "console.example.org"}, timeout=60)
    assert answer.status_code == 403


def test_pages_may_load_nothing_from_elsewhere_and_be_framed_by_nobody(console: Served) -> None:
    answer = console.browser.get(console.url, timeout=60)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["Cache-Control"] == "no-store"
    cookie = next(iter(console.browser.cookies))
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite") == "Strict"


# what is shown


def test_cells_and_hosts_are_shown_with_what_they_hold(console: Served, cloud: Any) -> None:
    cloud.boot()
    page = console.page("/")
    for name in ("cell1", "cell2", "cell1-host1", "cell2-host2"):
        assert name in page
    assert "1 server, 2 hosts" in page


def test_an_operation_is_drawn_as_it_went(console: Served, cloud: Any) -> None:
    server = cloud.resized(cloud.boot())
    (operation,) = (
        one
        for one in cloud.admin.compute.get(f"/os-causeway/servers/{server.id}/operations?all=1").json()["operations"]
        if one["recipe"] == "resize"
    )
    page = console.page(f"/operations/{operation['id']}")
    for step in operation["steps"]:
        assert step["step"] in page
    assert f">{operation['steps'][2]['host']}</text>" in page
    shown = console.page(f"/servers/{server.id}")
    assert "VERIFY_RESIZE" in shown
    assert operation["id"] in shown


def test_why_a_server_can_go_where(console: Served, cloud: Any) -> None:
    server = cloud.boot()
    page = console.page(f"/servers/{server.id}/explanation")
    assert "cell2-host1" in page
    assert "is left out of this request" in page


def test_a_drain_says_what_keeps_its_servers(console: Served, cloud: Any) -> None:
    server = cloud.boot("<i>stays</i>")
    drain = drain_of(cloud, server)
    assert "empty cell1" in console.page("/drains")
    page = console.page(f"/drains/{drain.id}")
    assert "cell2 is full" in page
    assert "&lt;i&gt;stays" in page
    assert "<i>stays" not in page


def test_a_drain_does_not_end_before_its_last_hold(console: Served, cloud: Any) -> None:
    drain = drain_of(cloud, cloud.boot())
    database, until = cloud.parts.api_database, (utcnow() + timedelta(days=2)).replace(microsecond=0)
    drains.transit(database, drain.id, DrainState.RUNNING, started_at=utcnow())
    owned = drains.acquire(database, drain.id, "nobody", 600.0)
    assert owned is not None
    (row,) = drains.servers(database, drain.id)
    drains.change_server(database, owned, row, state=DrainServerState.PENDING, why=None, not_before=until)
    page = console.page(f"/drains/{drain.id}")
    assert f"0 of 1; the last not before {until.day} {until:%b %H:%M} UTC (hold)" in page
    assert f"{until:%Y-%m-%d %H:%M} (hold)" in page
    drains.transit(database, drain.id, DrainState.CANCELLING)


def test_an_audit_is_made_when_it_is_wanted(console: Served) -> None:
    assert "agree" not in console.page("/audit").lower()
    assert "All agree" in console.page("/audit?look=1")


def test_changes_are_sent_as_they_come(console: Served, cloud: Any) -> None:
    with console.browser.get(f"{console.url}/events/drains", stream=True, timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        lines = (line for line in answer.iter_lines(decode_unicode=True) if line.startswith("data: "))
        assert "new one" not in json.loads(next(lines).removeprefix("data: "))
        drain_of(cloud, cloud.boot(), "new one")
        assert "new one" in json.loads(next(lines).removeprefix("data: "))


@pytest.mark.parametrize("path", ["/drains/nothing", f"/operations/{NOBODY}", f"/servers/{NOBODY}", "/x"])
def test_what_is_not_there_is_said(console: Served, path: str) -> None:
    assert "This did not work" in console.page(path, status=404)


# what forms do


def test_a_drain_is_cancelled_after_a_question(console: Served, cloud: Any) -> None:
    drain = drain_of(cloud, cloud.boot())
    assert f'/drains/{drain.id}/cancel"' in console.page(f"/drains/{drain.id}")
    assert "Cancel this drain?" in console.page(f"/drains/{drain.id}/cancel")
    assert drains.get(cloud.parts.api_database, drain.id).state is DrainState.PLANNED
    console.press(f"/drains/{drain.id}/cancel", f"/drains/{drain.id}/cancel")
    assert drains.get(cloud.parts.api_database, drain.id).state is DrainState.CANCELLED
    assert utcnow() >= (drains.get(cloud.parts.api_database, drain.id).ended_at or utcnow())


@pytest.mark.parametrize(("action", "status"), [("confirm", "ACTIVE"), ("revert", "ACTIVE")])
def test_a_resize_is_confirmed_or_reverted(console: Served, cloud: Any, action: str, status: str) -> None:
    server = cloud.resized(cloud.boot())
    console.press(f"/servers/{server.id}/{action}", f"/servers/{server.id}/{action}")
    assert cloud.wait(server, status).status == status


def test_what_the_api_refuses_is_said(console: Served, cloud: Any) -> None:
    server = cloud.boot()
    answer = console.press(f"/servers/{server.id}/confirm", f"/servers/{server.id}/confirm", status=409)
    assert "Cannot &#39;confirmResize&#39; instance" in answer.text


def test_forms_of_other_sites_do_nothing(console: Served, cloud: Any) -> None:
    drain = drain_of(cloud, cloud.boot())
    path = f"{console.url}/drains/{drain.id}/cancel"
    secret = console.sessions.secret(next(iter(console.browser.cookies)).value or "")
    for data, headers in (
        ({}, {}),
        ({"secret": "0" * 64}, {}),
        ({"secret": secret}, {"Origin": "https://elsewhere.example.org"}),
        ({"secret": secret, "more": "x" * 10_000}, {}),
    ):
        answer = console.browser.post(path, data=data, headers=headers, allow_redirects=False, timeout=60)
        assert answer.status_code == 403, answer.text
    assert drains.get(cloud.parts.api_database, drain.id).state is DrainState.PLANNED
