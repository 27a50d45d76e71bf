"""Consoles of simulated guests through the proxy: what they show, who may open them, and what becomes of them in moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
import sqlalchemy as sa

from causeway.store.api import console_tokens
from tests.functional.servers.console_socket import Console, handshake
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("opens consoles of simulated guests")

CLOUD = {"overrides": {"console": {"check_interval": 0.2}}}


@pytest.fixture
def server(cloud: Cloud) -> Any:
    return cloud.boot()


@pytest.fixture
def opened() -> Iterator[list[Console]]:
    consoles: list[Console] = []
    yield consoles
    for console in consoles:
        console.close()


def ask(connection: Any, server: Any, kind: str = "serial", protocol: str = "serial", version: str = "2.96") -> Any:
    body = {"remote_console": {"protocol": protocol, "type": kind}}
    return connection.compute.post(f"/servers/{server.id}/remote-consoles", json=body, microversion=version)


def url_of(cloud: Cloud, server: Any) -> str:
    answer = ask(cloud.member, server)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["remote_console"]["url"])


def host_of(cloud: Cloud, server: Any) -> str:
    found: str = cloud.show(server).compute_host
    return found


def token_in(url: str) -> str:
    return parse_qs(urlsplit(url).query)["token"][0]


def connect(opened: list[Console], url: str, **how: Any) -> Console:
    opened.append(Console(url, **how))
    return opened[-1]


def test_a_console_shows_what_the_guest_wrote_and_echoes_what_is_typed(cloud: Cloud, server: Any, opened: Any) -> None:
    url = url_of(cloud, server)
    console = connect(opened, url)
    assert b"CAUSEWAY-GUEST boot=1" in console.reads(b"CAUSEWAY-READY\r\n")
    console.type("good morning\r")
    console.reads(b"good morning\r\n")
    # The same URL opens it again, and everybody sees the same.
    second = connect(opened, url)
    assert b"good morning" in second.reads(b"good morning\r\n")
    second.type("and good night\r")
    console.reads(b"and good night\r\n")
    log = cloud.member.compute.get_server_console_output(server.id)["output"]
    assert "good morning\nand good night\n" in log


def test_a_console_says_that_the_server_has_moved(cloud: Cloud, server: Any, opened: Any) -> None:
    """Its old URL opens nothing any more, a new one the console where the server is now."""
    url = url_of(cloud, server)
    console = connect(opened, url)
    console.reads(b"CAUSEWAY-READY\r\n")
    before = host_of(cloud, server)
    moved = cloud.resized(server)
    assert host_of(cloud, moved).partition("-")[0] != before.partition("-")[0]
    code, reason = console.ended()
    said = f"The server has moved: ask for a new console (POST /servers/{server.id}/remote-consoles)"
    assert (code, reason) == (1008, said)
    assert connect(opened, url).ended() == (1008, said)
    there = connect(opened, url_of(cloud, server))
    assert b"boot=2" in there.reads(b"CAUSEWAY-READY\r\n")


def test_a_console_says_that_a_guest_that_never_stopped_has_moved(cloud: Cloud, server: Any, opened: Any) -> None:
    console = connect(opened, url_of(cloud, server))
    console.reads(b"CAUSEWAY-READY\r\n")
    cloud.admin.compute.live_migrate_server(server.id, block_migration="auto")
    code, reason = console.ended()
    assert code == 1008
    assert reason.startswith("The server has moved")


def test_a_console_says_that_the_server_was_deleted(cloud: Cloud, server: Any, opened: Any) -> None:
    url = url_of(cloud, server)
    console = connect(opened, url)
    console.reads(b"CAUSEWAY-READY\r\n")
    cloud.member.compute.delete_server(server.id)
    code, reason = console.ended()
    assert (code, reason) == (1008, f"The server {server.id} was deleted")
    assert connect(opened, url).ended() == (1008, f"The server {server.id} was deleted")


def test_a_token_is_needed_and_ends(cloud: Cloud, server: Any, opened: Any) -> None:
    url = url_of(cloud, server)
    database = cloud.parts.api_database
    with database.read() as connection:
        kept = connection.execute(sa.select(console_tokens.TABLE)).mappings().all()
    assert token_in(url) not in str(kept)
    for wrong in ("", "?token=", "?token=none"):
        code, reason = connect(opened, url.partition("?")[0] + wrong).ended()
        assert (code, reason) == (1008, "This token is wrong or has expired: ask for a new console")
    hashed = console_tokens.hash_of(token_in(url))
    mine = console_tokens.TABLE.c.token_hash == hashed
    with database.write() as connection:
        connection.execute(
            console_tokens.TABLE.update().where(mine).values(expires_at=sa.text("'2020-01-01 00:00:00'"))
        )
    code, reason = connect(opened, url).ended()
    assert (code, reason) == (1008, "This token is wrong or has expired: ask for a new console")
    other = url_of(cloud, server)
    console_tokens.purge(database)
    with database.read() as connection:
        left = set(connection.execute(sa.select(console_tokens.TABLE.c.token_hash)).scalars())
    assert hashed not in left
    assert console_tokens.hash_of(token_in(other)) in left


def test_the_time_of_a_console_is_over_if_the_operator_wants_that(cloud: Cloud, server: Any, opened: Any) -> None:
    conf = cloud.parts.conf
    conf.set_override("enforce_session_timeout", True, group="consoleauth")
    conf.set_override("token_ttl", 2, group="consoleauth")
    try:
        console = connect(opened, url_of(cloud, server))
        code, reason = console.ended()
    finally:
        conf.clear_override("enforce_session_timeout", group="consoleauth")
        conf.clear_override("token_ttl", group="consoleauth")
    assert code == 1008
    assert reason.startswith("The time of this console is over")


def test_pages_of_others_open_nothing(cloud: Cloud, server: Any, opened: Any) -> None:
    url = url_of(cloud, server)
    own = f"http://{urlsplit(url).netloc}"
    for origin in ("http://evil.example", "null", "ftp://127.0.0.1", "https://127.0.0.1", "http://[broken"):
        code, reason = connect(opened, url, origin=origin).ended()
        assert (code, reason) == (1008, "Pages of this site may not open consoles ([console] allowed_origins)"), origin
    connect(opened, url, origin=own).reads(b"CAUSEWAY-READY\r\n")
    cloud.parts.conf.set_override("allowed_origins", ["page.example"], group="console")
    try:
        connect(opened, url, origin="http://page.example").reads(b"CAUSEWAY-READY\r\n")
    finally:
        cloud.parts.conf.clear_override("allowed_origins", group="console")


def test_a_port_that_another_guest_has_by_now_is_not_connected_to(cloud: Cloud, server: Any, opened: Any) -> None:
    url = url_of(cloud, server)
    driver: Any = cloud.embedded.computes[host_of(cloud, server)].host.driver
    driver._serial.close()
    code, reason = connect(opened, url).ended()
    assert code == 1008
    assert reason.startswith("The guest was restarted: ask for a new console")


def test_a_guest_that_is_off_has_none(cloud: Cloud, server: Any, opened: Any) -> None:
    url = url_of(cloud, server)
    cloud.member.compute.stop_server(server.id)
    cloud.member.compute.wait_for_server(cloud.member.compute.get_server(server.id), status="SHUTOFF")
    answer = ask(cloud.member, server)
    assert (answer.status_code, "does not run" in answer.text) == (409, True)
    code, reason = connect(opened, url).ended()
    assert (code, reason) == (1008, f"The guest was stopped. When it runs: POST /servers/{server.id}/remote-consoles")


def test_a_proxy_of_somebody_else_gets_where_the_console_is(cloud: Cloud, server: Any) -> None:
    path = f"/os-console-auth-tokens/{token_in(url_of(cloud, server))}"
    shown, before = (cloud.admin.compute.get(path, microversion=version).json() for version in ("2.99", "2.98"))
    driver: Any = cloud.embedded.computes[host_of(cloud, server)].host.driver
    port = driver._serial.port_of(server.id)
    console = {"instance_uuid": server.id, "host": "127.0.0.1", "port": port, "internal_access_path": None}
    assert before == {"console": console}
    assert shown == {"console": console | {"tls_port": None}}
    assert cloud.admin.compute.get(path + "?colour=red", microversion="2.99").status_code == 400
    assert cloud.admin.compute.get(path + "?colour=red", microversion="2.98").status_code == 200
    assert cloud.admin.compute.get(path, microversion="2.30").status_code == 400
    assert cloud.member.compute.get(path, microversion="2.31").status_code == 403
    assert cloud.admin.compute.get("/os-console-auth-tokens/none", microversion="2.31").status_code == 404
    cloud.resized(server)
    moved = cloud.admin.compute.get(path, microversion="2.31")
    assert (moved.status_code, "has moved" in moved.text) == (404, True)


def test_the_actions_of_before_2_6_open_consoles(cloud: Cloud, server: Any, opened: Any) -> None:
    def act(name: str, kind: str, version: str = "2.5") -> Any:
        return cloud.member.compute.post(
            f"/servers/{server.id}/action", json={name: {"type": kind}}, microversion=version
        )

    answer = act("os-getSerialConsole", "serial")
    assert answer.status_code == 200
    console = answer.json()["console"]
    assert console["type"] == "serial"
    connect(opened, console["url"]).reads(b"CAUSEWAY-READY\r\n")
    for name, kind in (
        ("os-getVNCConsole", "novnc"),
        ("os-getVNCConsole", "xvpvnc"),
        ("os-getSPICEConsole", "spice-html5"),
    ):
        answer = act(name, kind)
        assert (answer.status_code, f"Unavailable console type {kind}" in answer.text) == (400, True), name
        assert act(name, kind, "2.6").status_code == 404, name


@pytest.mark.parametrize(
    ("protocol", "kind", "version"),
    [
        ("vnc", "novnc", "2.6"),
        ("vnc", "xvpvnc", "2.6"),
        ("spice", "spice-html5", "2.96"),
        ("serial", "novnc", "2.96"),
        ("vnc", "serial", "2.96"),
        ("mks", "webmks", "2.8"),
        ("spice", "spice-direct", "2.99"),
    ],
)
def test_what_a_simulated_host_has_not(cloud: Cloud, server: Any, protocol: str, kind: str, version: str) -> None:
    answer = ask(cloud.member, server, kind, protocol, version)
    assert (answer.status_code, f"Unavailable console type {kind}" in answer.text) == (400, True)


def test_the_proxy_serves_its_pages_and_nothing_else(cloud: Cloud) -> None:
    port = cloud.embedded.console_proxy.port
    here = f"http://127.0.0.1:{port}"
    page = requests.get(f"{here}/serial.html?token=secret", timeout=30)
    assert (page.status_code, page.headers["Content-Type"]) == (200, "text/html")
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert requests.head(f"{here}/serial.js", timeout=30).content == b""
    for path in (
        "/",
        "/static",
        "/../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/a%00",
    ):
        answer = handshake(port, f"GET {path} HTTP/1.1\nHost: x\n\n")
        assert answer.startswith(b"HTTP/1.1 404"), path
    assert handshake(port, "GET //evil.example/ HTTP/1.1\nHost: x\n\n").startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))
    assert handshake(port, "POST / HTTP/1.1\nHost: x\n\n").startswith(b"HTTP/1.1 501")
    assert handshake(port, "GET / HTTP/1.1\nUpgrade: websocket\n\n").startswith(b"HTTP/1.1 400")


def test_connections_are_bounded_and_closed(cloud: Cloud, server: Any, opened: Any) -> None:
    proxy = cloud.embedded.console_proxy
    url = url_of(cloud, server)
    for _ in range(3):
        connect(opened, url).reads(b"CAUSEWAY-READY\r\n")
    assert len(proxy._connections) == 3
    while opened:
        opened.pop().close()
    until(lambda: len(proxy._connections), lambda left: left == 0, "the proxy's end of closed consoles")
