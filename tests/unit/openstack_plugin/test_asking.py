"""Requests to the API: what is made of answers that are late, refused, strange or many."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from keystoneauth1 import exceptions as keystone_errors

from causeway.openstack_plugin import asking


class Answer:
    def __init__(self, body: Any, status: int = 200, reason: str = "Some reason") -> None:
        self.status_code, self.reason = status, reason
        self.content = body if isinstance(body, str) else json.dumps(body)

    def json(self) -> Any:
        return json.loads(self.content)


class Compute:
    """Gives the answers one by one; what is an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    def request(self, path: str, method: str, *, params: Any, **_options: Any) -> Any:
        self.asked.append((method, path, dict(params)))
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    paused: list[float] = []
    pause: Callable[[float], None] = paused.append
    monkeypatch.setattr("time.sleep", pause)
    return paused


def test_what_is_none_is_not_asked_for() -> None:
    compute = Compute(Answer({"a": 1}))
    assert asking.ask(compute, "/x", query={"all": None, "recipe": ["a", "b"]}) == {"a": 1}
    assert compute.asked == [("GET", "/x", {"recipe": ["a", "b"]})]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            Answer({"conflictingRequest": {"code": 409, "message": "Not now."}}, 409),
            "The cloud refused (409): Not now.",
        ),
        (Answer({"error": {"code": 401, "message": "Who?"}}, 401), "The cloud refused (401): Who?"),
        (Answer("<html>Bad gateway</html>", 502, "Bad Gateway"), "The cloud refused (502): Bad Gateway"),
        (Answer([], 500, "Oh"), "The cloud refused (500): Oh"),
        (Answer("", 404, "Not Found"), "The cloud refused (404): Not Found"),
    ],
)
def test_a_refusal_says_what_the_api_said(answer: Answer, text: str) -> None:
    with pytest.raises(asking.Refused) as refusal:
        asking.ask(Compute(answer), "/x")
    assert (str(refusal.value), refusal.value.status) == (text, answer.status_code)


def test_an_api_that_nobody_answers_at_is_said_with_a_question() -> None:
    with pytest.raises(asking.NotAsked, match="Does it run"):
        asking.ask(Compute(keystone_errors.ConnectFailure("refused")), "/x")


def page(*ids: str, more: bool = False) -> Answer:
    link = {"rel": "next", "href": f"http://cloud/v2.1/things?limit=2&marker={ids[-1]}"} if more else None
    return Answer({"things": [{"id": each} for each in ids]} | ({"things_links": [link]} if link else {}))


def ids(found: Any) -> list[str]:
    return [each["id"] for each in found]


def test_all_pages_are_followed() -> None:
    compute = Compute(page("1", "2", more=True), page("3"))
    assert ids(asking.pages(compute, "/things", "things", {"state": "x"})) == ["1", "2", "3"]
    assert [query for _method, _path, query in compute.asked] == [{"state": "x"}, {"state": "x", "marker": "2"}]


@pytest.mark.parametrize(("most", "wanted", "limits"), [(3, "123", ["3", "1"]), (2, "12", ["2"]), (0, "", [])])
def test_no_more_is_asked_for_than_wanted(most: int, wanted: str, limits: list[str]) -> None:
    """The API gives two at a time, and a link whenever a page is full."""
    compute = Compute(page("1", "2", more=True), page("3", more=True))
    assert ids(asking.pages(compute, "/things", "things", most=most)) == list(wanted)
    assert [query["limit"] for _method, _path, query in compute.asked] == limits


def test_a_page_that_is_longer_than_was_asked_for() -> None:
    compute = Compute(page("1", "2", "3", more=True))
    assert ids(asking.pages(compute, "/things", "things", most=2)) == ["1", "2"]


def servers(*found: tuple[str, str]) -> Answer:
    return Answer({"servers": [{"id": server_id, "name": name} for server_id, name in found]})


def test_a_server_is_found_by_its_name() -> None:
    compute = Compute(servers(("1", "web.1")))
    assert asking.id_of_server(compute, "web.1") == "1"
    assert compute.asked[0][2] == {"all_tenants": "1", "name": r"^web\.1$"}
    with pytest.raises(asking.NotAsked, match=r"There is no server web\."):
        asking.id_of_server(Compute(servers()), "web")
    with pytest.raises(asking.NotAsked, match=r"There are 2 servers named web: give an id \(1, 2\)"):
        asking.id_of_server(Compute(servers(("1", "web"), ("2", "web"))), "web")


def test_an_id_is_not_looked_up() -> None:
    server = "11111111-2222-3333-4444-555555555555"
    assert asking.id_of_server(Compute(), server) == server


def test_who_may_not_look_into_all_projects_looks_into_their_own() -> None:
    compute = Compute(Answer({"forbidden": {"code": 403, "message": "No."}}, 403), servers(("1", "web")))
    assert asking.id_of_server(compute, "web") == "1"
    assert "all_tenants" not in compute.asked[1][2]


def seen(version: str, ended_at: str | None = None) -> Answer:
    return Answer({"operation": {"version": version, "ended_at": ended_at}})


def test_an_operation_is_followed_until_it_has_ended(no_pauses: list[float]) -> None:
    compute = Compute(seen("a"), seen("b"), seen("b"), seen("c", "2026-08-01"))
    assert [each["version"] for each in asking.follow(compute, "1")] == ["a", "b", "c"]
    waits = [query.get("seen") for _method, _path, query in compute.asked]
    assert waits == [None, "a", "b", "b"]
    # The third one came back at once and with nothing new: all that may wait do.
    assert no_pauses == [asking.PAUSE]


@pytest.mark.parametrize("failure", [keystone_errors.ConnectFailure("refused"), Answer("", 503)])
def test_an_api_that_is_started_again_is_waited_for(failure: Any) -> None:
    compute = Compute(seen("a"), failure, failure, seen("b", "2026-08-01"))
    assert [each["version"] for each in asking.follow(compute, "1")] == ["a", "b"]


def test_an_operation_that_is_not_there_is_not_waited_for() -> None:
    gone = Answer({"itemNotFound": {"code": 404, "message": "Gone."}}, 404)
    with pytest.raises(asking.Refused, match="Gone"):
        list(asking.follow(Compute(gone), "1"))


def test_an_api_that_stays_unreachable_is_abandoned() -> None:
    compute = Compute(*[keystone_errors.ConnectFailure("refused")] * asking.TRIES)
    with pytest.raises(asking.NotAsked):
        list(asking.follow(compute, "1"))
    assert compute.answers == []
