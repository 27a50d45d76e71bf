"""The serial console of a server, opened from its page, in a real browser. Skipped without chromium."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from tests.browser import chromium_started, shown
from tests.functional.console.conftest import Served

CLOUD = {"overrides": {"console": {"check_interval": 0.2}}}


def test_the_page_of_a_server_leads_to_its_console(console: Served, cloud: Any) -> None:
    server = cloud.boot()
    assert f'/servers/{server.id}/console"' in console.page(f"/servers/{server.id}")
    answer = console.browser.get(f"{console.url}/servers/{server.id}/console", timeout=60, allow_redirects=False)
    assert answer.status_code == 303
    port = cloud.embedded.console_proxy.port
    assert answer.headers["Location"].startswith(f"http://127.0.0.1:{port}/serial.html?token=")
    assert requests.get(f"{console.url}/servers/{server.id}/console", timeout=60).status_code == 401
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    refused = console.browser.get(f"{console.url}/servers/{server.id}/console", timeout=60)
    assert (refused.status_code, "does not run" in refused.text) == (409, True)


@pytest.fixture
def chromium() -> Iterator[Any]:
    with chromium_started() as made:
        yield made


@pytest.mark.browser
def test_a_serial_console_works_until_its_server_moves(chromium: Any, opened: Served, cloud: Any) -> None:
    server = cloud.boot()
    chromium.get(f"{opened.url}/enter?token={opened.sessions.token}")
    opened.url = chromium.current_url.rstrip("/")
    chromium.get(f"{opened.url}/servers/{server.id}")
    shown(chromium, lambda at: at.find_element(By.ID, "console")).click()
    shown(chromium, lambda at: len(at.window_handles) == 2)
    chromium.switch_to.window(chromium.window_handles[1])
    shown(chromium, lambda at: "CAUSEWAY-READY" in at.find_element(By.ID, "terminal").text)
    assert chromium.find_element(By.ID, "standing").text == "Connected"
    ActionChains(chromium).send_keys("good morning").perform()
    shown(chromium, lambda at: "good morning" in at.find_element(By.ID, "terminal").text)
    cloud.resized(server)
    shown(chromium, lambda at: "The server has moved" in at.find_element(By.ID, "standing").text)
