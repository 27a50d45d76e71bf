"""An embedded cloud for each test module, and the console over its API."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from causeway.http.server import make_server
from causeway.operators_page.app import Console
from causeway.operators_page.cloud import Cloud
from causeway.operators_page.sessions import Sessions
from tests.functional.servers.conftest import (
    at_point,
    cloud,
    cloud_options,
    declared,
    deployed,
    dies_at,
    embedded,
    module_cloud,
)

__all__ = ["at_point", "cloud", "cloud_options", "declared", "deployed", "dies_at", "embedded", "module_cloud"]

_SECRET = re.compile(r'name="secret" value="([0-9a-f]+)"')


@dataclass
class Served:
    """A console that runs. ``browser``: somebody who came in by the URL that it printed; ``url``: where the pages then are."""

    url: str
    origin: str
    sessions: Sessions
    browser: requests.Session

    def page(self, path: str, status: int = 200) -> str:
        answer = self.browser.get(self.url + path, timeout=60)
        assert answer.status_code == status, answer.text
        return answer.text

    def press(self, form_on: str, action: str, status: int = 303) -> requests.Response:
        """Sends the form for ``action`` that a page has."""
        secret = _SECRET.search(self.page(form_on))
        assert secret is not None, f"{form_on} has no form"
        answer = self.browser.post(
            self.url + action,
            data={"secret": secret[1]},
            allow_redirects=False,
            timeout=60,
            headers={"Origin": self.origin},
        )
        assert answer.status_code == status, answer.text
        return answer


@pytest.fixture
def opened(cloud: Any) -> Iterator[Served]:
    """Nobody came in yet."""
    sessions = Sessions()
    console = Console(Cloud(cloud.admin.compute), sessions)
    server = make_server("127.0.0.1", 0, console.app, threads=8, name="console")
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    with requests.Session() as browser:
        origin = f"http://127.0.0.1:{server.bind_addr[1]}"
        yield Served(origin, origin, sessions, browser)
    console.stopping.set()
    server.stop()
    thread.join()


@pytest.fixture
def console(opened: Served) -> Served:
    entered = opened.browser.get(f"{opened.url}/enter?token={opened.sessions.token}", timeout=60)
    assert entered.status_code == 200
    opened.url = entered.url.rstrip("/")
    return opened
