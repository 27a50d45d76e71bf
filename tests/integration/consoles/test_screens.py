"""The screen and the serial console of a real guest, through the proxy of an embedded cloud: with a client, and in a browser."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By

from causeway.virt.lab.hosts import missing
from tests.browser import COLOURS, chromium_started, shown
from tests.functional.servers import patience
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.console_socket import Console
from tests.integration.embedded_guests import cloud_with_guests

REASON = missing()
PIXELS = "let c = document.querySelector('#screen canvas'); return c && c.width * c.height"

pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def module_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedCloud]:
    options = {"console": {"check_interval": 0.5}}
    with cloud_with_guests(tmp_path_factory.mktemp("cloud"), cells=2, hosts_per_cell=1, overrides=options) as embedded:
        yield AuditedCloud(embedded)


@pytest.fixture
def cloud(module_cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditedCloud]:
    monkeypatch.setattr(patience, "PATIENCE", 120.0)
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()


def url_of(cloud: AuditedCloud, server: Any, protocol: str, kind: str) -> str:
    body = {"remote_console": {"protocol": protocol, "type": kind}}
    answer = cloud.member.compute.post(f"/servers/{server.id}/remote-consoles", json=body, microversion="2.96")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["remote_console"]["url"])


def shake_hands(console: Console) -> tuple[int, int, str]:
    """RFB 3.8 without a password: the screen's width, height and name."""
    assert console.read(12) == b"RFB 003.008\n"
    console.send(b"RFB 003.008\n")
    (count,) = console.read(1)
    assert 1 in console.read(count)
    console.send(b"\x01")
    assert console.read(4) == b"\0\0\0\0"
    console.send(b"\x01")
    width, height, _format, length = struct.unpack(">HH16sI", console.read(24))
    return width, height, console.read(length).decode()


def test_a_screen_is_shown_until_its_server_moves(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    url = url_of(cloud, server, "vnc", "novnc")
    console, serial = Console(url), Console(url_of(cloud, server, "serial", "serial"))
    width, height, name = shake_hands(console)
    assert width >= 640 and height >= 400
    assert server.id in name
    # Before its kernel has the port, what is typed is lost.
    serial.reads(b"CAUSEWAY-READY")
    serial.type("good morning\r")
    serial.reads(b"good morning")
    cloud.resized(server)
    said = f"The server has moved: ask for a new console (POST /servers/{server.id}/remote-consoles)"
    assert console.ended() == (1008, said)
    assert serial.ended() == (1008, said)
    assert Console(url).ended() == (1008, said)
    there = Console(url_of(cloud, server, "vnc", "novnc"))
    assert server.id in shake_hands(there)[2]
    cloud.confirmed(server)
    # It is the same guest on the same host.
    there.send(struct.pack(">BBHHHH", 3, 0, 0, 0, 8, 8))
    assert there.read(1) == b"\0"
    cloud.member.compute.stop_server(server.id)
    code, reason = there.ended()
    assert (code, reason) == (1008, f"The guest was stopped. When it runs: POST /servers/{server.id}/remote-consoles")


@pytest.mark.browser
@pytest.mark.skipif(
    not Path("/usr/share/novnc/core/rfb.js").exists(), reason="there is no noVNC (Debian's package novnc)"
)
def test_a_browser_shows_a_screen_until_its_server_moves(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    with chromium_started() as browser:
        browser.get(url_of(cloud, server, "vnc", "novnc"))
        shown(browser, lambda at: at.find_element(By.ID, "standing").text == "Connected")
        assert browser.execute_script(PIXELS) >= 640 * 400
        # What the guest's firmware wrote.
        shown(browser, lambda at: at.execute_script(COLOURS) > 1)
        cloud.resized(server)
        shown(browser, lambda at: "The server has moved" in at.find_element(By.ID, "standing").text)
