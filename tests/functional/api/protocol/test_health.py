"""``/healthcheck``: always quick; says on this machine, and nowhere else, which databases can't be reached."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import falcon.testing
import pytest
from sqlalchemy import event

from causeway.api.app import build_app
from causeway.api.resources import health
from causeway.model.host import CellMapping
from causeway.store.api import cells as cell_records


@pytest.fixture
def client(cloud: Any, monkeypatch: pytest.MonkeyPatch) -> falcon.testing.TestClient:
    monkeypatch.setattr(health, "MAX_AGE", 0.0)
    return falcon.testing.TestClient(build_app(cloud.services))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells have a moment to answer, because one of them hangs; the API database has as long as always."""
    ask = health.Health._ask

    def ask_briefly(self: health.Health, checks: dict[str, Any]) -> dict[str, str]:
        with monkeypatch.context() as patched:
            if "cell2" in checks:
                patched.setattr(health, "PATIENCE", 0.3)
            return ask(self, checks)

    monkeypatch.setattr(health.Health, "_ask", ask_briefly)


@pytest.fixture
def hung(cloud: Any) -> Iterator[list[str]]:
    """cell2's database takes every statement and answers none; each statement is noted."""
    over, asked = threading.Event(), []

    def wait(*arguments: Any) -> None:
        asked.append(str(arguments[2]))
        over.wait(60)

    event.listen(cloud.cell("cell2").engine, "before_cursor_execute", wait)
    yield asked
    over.set()


def detailed(client: falcon.testing.TestClient, **options: Any) -> Any:
    return client.simulate_get("/healthcheck?detailed=true", **({"remote_addr": "127.0.0.1"} | options))


def test_plain_it_says_that_the_process_answers(client: falcon.testing.TestClient) -> None:
    assert client.simulate_get("/healthcheck").json == {"status": "OK"}


def test_every_database_is_named_if_all_is_well(client: falcon.testing.TestClient) -> None:
    answer = detailed(client)
    assert (answer.status_code, answer.json["status"]) == (200, "OK")
    assert set(answer.json["checks"].items()) == {(name, "OK") for name in ("API database", "cell0", "cell1", "cell2")}


def test_a_cell_that_is_gone_is_named(client: falcon.testing.TestClient, cloud: Any) -> None:
    gone = CellMapping(cloud.cell_uuids["cell2"], "cell2", "none:///", "sqlite:////nowhere/at/all.sqlite")
    cell_records.save_cell(cloud.services.api, gone)
    cloud.services.cells.refresh()
    answer = detailed(client)
    assert (answer.status_code, answer.json["status"]) == (200, "DEGRADED")
    assert answer.json["checks"]["cell2"] != "OK" == answer.json["checks"]["cell1"]


@pytest.mark.usefixtures("impatient")
def test_a_cell_that_hangs_is_not_asked_again(client: falcon.testing.TestClient, hung: list[str]) -> None:
    for _ in range(3):
        answer = detailed(client)
        assert (answer.status_code, answer.json["checks"]["cell2"]) == (200, "does not answer")
    assert len(hung) == 1


def test_without_the_api_database_it_is_503(
    client: falcon.testing.TestClient, cloud: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "PATIENCE", 0.3)
    database = cloud.services.api
    over = threading.Event()
    event.listen(database.engine, "before_cursor_execute", lambda *_: over.wait(60) and None)
    try:
        answer = detailed(client)
    finally:
        over.set()
    assert answer.status_code == 503
    assert answer.json == {"status": "UNAVAILABLE", "checks": {"API database": "does not answer"}}


@pytest.mark.parametrize(
    "options", [{"remote_addr": "192.0.2.7"}, {"headers": {"X-Forwarded-For": "192.0.2.7"}}], ids=["elsewhere", "proxy"]
)
def test_others_get_nothing_more(client: falcon.testing.TestClient, options: dict[str, Any]) -> None:
    assert detailed(client, **options).json == {"status": "OK"}
