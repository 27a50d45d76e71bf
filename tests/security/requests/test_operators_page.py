"""The operators' page on a real server: malformed forms, and a cookie that another program of the machine has seen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
import requests

from causeway.http.server import make_server
from causeway.openstack_plugin.asking import NotAsked
from causeway.operators_page.app import Console
from causeway.operators_page.sessions import Sessions

DRAIN = str(UUID(int=5))
OTHER_PORT = 1


class Asked:
    """Stands for the cloud: it is not reached, and notes what a form was allowed to ask."""

    def __init__(self) -> None:
        self.actions: list[tuple[str, str]] = []

    def act_on_drain(self, drain_id: str, action: str) -> None:
        self.actions.append((drain_id, action))

    def __getattr__(self, name: str) -> Any:
        def ask(*_arguments: Any) -> Any:
            raise NotAsked(f"{name}: the cloud is elsewhere")

        return ask


class Page:
    def __init__(self, origin: str, sessions: Sessions, asked: Asked) -> None:
        self.origin, self.sessions, self.asked = origin, sessions, asked
        entered = requests.get(f"{origin}/enter?token={sessions.token}", allow_redirects=False, timeout=60)
        assert entered.status_code == 303
        self.root = entered.headers["Location"].rstrip("/")
        (self.cookie,) = SimpleCookie(entered.headers["Set-Cookie"]).values()
        self.cookies = {"Cookie": f"{self.cookie.key}={self.cookie.value}"}

    @property
    def secret(self) -> str:
        return self.sessions.secret(self.cookie.value)

    def get(self, path: str, **headers: str) -> requests.Response:
        return requests.get(f"{self.origin}{path}", headers=headers, timeout=60)

    def post(self, data: Any, **headers: str) -> requests.Response:
        url = f"{self.origin}{self.root}/drains/{DRAIN}/start"
        return requests.post(url, data=data, headers=self.cookies | headers, allow_redirects=False, timeout=60)


@pytest.fixture
def page() -> Iterator[Page]:
    sessions, asked = Sessions(), Asked()
    console = Console(asked, sessions)  # type: ignore[arg-type]
    server = make_server("127.0.0.1", 0, console.app, threads=4, name="console")
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield Page(f"http://127.0.0.1:{server.bind_addr[1]}", sessions, asked)
    console.stopping.set()
    server.stop()
    thread.join()


def test_the_operators_page_takes_its_own_form(page: Page) -> None:
    answer = page.post({"secret": page.secret}, Origin=page.origin)
    assert answer.status_code == 303
    assert answer.headers["Location"].endswith(f"{page.root}/drains/{DRAIN}")
    assert page.asked.actions == [(DRAIN, "start")]


@pytest.mark.parametrize(
    "form",
    [
        [("secret", "{secret}"), ("secret", "{secret}")],
        [("secret", "x"), ("secret", "y")],
        [("secret", "")],
        [],
        [("secret", "\x00\ud7ff")],
        [("secret", "x" * 4000)],
        [("secret", "x" * 100_000)],
        [("more", str(number)) for number in range(200)],
    ],
    ids=["twice", "two", "empty", "none", "strange", "long", "huge", "many"],
)
def test_a_malformed_form_is_refused_and_does_nothing(page: Page, form: list[tuple[str, str]]) -> None:
    answer = page.post([(name, value.format(secret=page.secret)) for name, value in form], Origin=page.origin)
    assert answer.status_code == 403, answer.text
    assert page.asked.actions == []


def test_a_form_in_chunks_is_refused(page: Page) -> None:
    kind = "application/x-www-form-urlencoded"
    answer = page.post(iter([f"secret={page.secret}".encode()]), **{"Content-Type": kind, "Origin": page.origin})
    assert answer.status_code == 403
    assert page.asked.actions == []


@pytest.mark.parametrize("query", ["", "token=", "token=a&token=b", "token=%ff", "token=" + "x" * 5000])
def test_a_malformed_token_is_refused(page: Page, query: str) -> None:
    assert page.get(f"/enter?{query}").status_code == 401


@pytest.mark.parametrize("query", ["look=0&look=2", "look=" + "x" * 5000, "look=%ff"])
def test_a_malformed_parameter_of_a_page_is_none(page: Page, query: str) -> None:
    assert page.get(f"{page.root}/audit?{query}", **page.cookies).status_code == 200


@pytest.mark.parametrize("cookie", ["=", "a=b", "\x01", "causeway-console-80=x", "{name}=", "{name}=x; {name}=y"])
def test_a_malformed_cookie_is_none(page: Page, cookie: str) -> None:
    if cookie != "\x01":
        given = cookie.format(name=page.cookie.key)
        assert page.get(f"{page.root}/", Cookie=given).status_code == 401


def test_the_cookie_alone_opens_nothing(page: Page) -> None:
    """As a program on another port would use it, if it got the cookie."""
    for path in ("/", "/drains", "/events/drains", f"/drains/{DRAIN}", "/" + "0" * 32 + "/drains", "/audit"):
        assert page.get(path, **page.cookies).status_code == 401, path
    url = f"{page.origin}/drains/{DRAIN}/start"
    answer = requests.post(url, data={"secret": page.secret}, headers=page.cookies, timeout=60)
    assert answer.status_code == 401
    assert page.asked.actions == []


def test_the_secret_path_alone_opens_nothing(page: Page) -> None:
    assert page.get(f"{page.root}/drains").status_code == 401


def test_browsers_send_the_cookie_only_below_the_secret_path(page: Page) -> None:
    assert page.cookie["path"] == page.root
    assert len(page.root) > 32
    assert page.cookie.key == f"causeway-console-{urlsplit(page.origin).port}"
    assert page.cookie["httponly"]
    assert page.cookie["samesite"] == "Strict"
    assert page.cookie.value not in page.root


def test_every_answer_forbids_frames(page: Page) -> None:
    for answer in (page.get("/"), page.get("/static/console.css"), page.get(f"{page.root}/audit", **page.cookies)):
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Frame-Options"] == "DENY"
