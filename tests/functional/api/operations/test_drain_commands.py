"""``openstack drain ...`` against the API, with a conductor that plans what the test says, and none that runs anything.

`servers/operations/test_openstack_drains` has the real client against a cloud.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.model.drains import (
    ON_HOLD,
    Afterwards,
    Climb,
    DrainRequest,
    DrainServer,
    DrainServerState,
    DrainState,
    First,
    How,
    Limits,
    Pacing,
    Plan,
    Scope,
    Shortage,
    Targets,
    Window,
)
from causeway.openstack_plugin import asking, drain_texts, drains
from causeway.store.api import drains as store
from causeway.store.database import utcnow
from tests.functional.conftest import Recorder

SERVER, STUCK = "11111111-2222-3333-4444-555555555555", "22222222-2222-3333-4444-555555555555"


class Proxy:
    """openstacksdk's proxy of the Compute API, for an API in this process."""

    def __init__(self, caller: Any) -> None:
        self._caller = caller

    def request(self, path: str, method: str, *, params: Any, timeout: float, raise_exc: bool, json: Any = None) -> Any:
        assert timeout > 0 and not raise_exc
        query = "&".join(f"{name}={value}" for name, given in params.items() for value in _many(given))
        answer = self._caller.call(method, path, json, query=query)
        return SimpleNamespace(
            status_code=answer.status, content=answer.text, json=lambda: answer.json, reason="no reason"
        )


def _many(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


class Client:
    """What the ``openstack`` client is to a command."""

    def __init__(self, caller: Any) -> None:
        project = SimpleNamespace(id="project-of-that-name")
        identity = SimpleNamespace(find_project=lambda _name, *, ignore_missing: ignore_missing or project)
        self.client_manager = SimpleNamespace(causeway=Proxy(caller), sdk_connection=SimpleNamespace(identity=identity))
        self.stdout, self.stderr = io.StringIO(), io.StringIO()

    def run(self, command: Any, *words: str) -> str:
        self.stdout.seek(0)
        self.stdout.truncate()
        made = command(self, None)
        made.run(made.get_parser("openstack").parse_args(words))
        return self.stdout.getvalue()

    def answer(self, command: Any, *words: str) -> Any:
        return json.loads(self.run(command, *words, "-f", "json"))


def a_plan() -> Plan:
    there: dict[str, Any] = {"source_cell": "cell1", "source_host": "a", "drain_id": ""}
    going = DrainServer(
        instance_uuid=SERVER, name="web", how=How.LIVE, target_cell="cell2", target_host="b", bytes=5 << 30,
        seconds=300.0, pause=0.5, **there,
    )  # fmt: skip
    stuck = DrainServer(instance_uuid=STUCK, name="db", why="Its host is down.", help="Start it.", **there)
    lacks = Shortage("cell2", "MEMORY_MB", 1024, 1, "cell2 lacks 1 GiB of memory for 1 server")
    began = datetime(2027, 1, 1)
    return Plan(
        [going, stuck], began, 1, 1, 5 << 30, 7300.0, datetime(2027, 1, 2), True, "link", 3600.0, False, [lacks]
    )


@pytest.fixture
def client(admin: Any, cloud: Any) -> Client:
    # Each plan has servers of its own: a drain's are written.
    cloud.services.conductor.answers["plan_drain"] = lambda *_args, **_words: a_plan()
    cloud.services.notifier = Recorder("notifier")
    return Client(admin)


@pytest.fixture
def drain(client: Client) -> str:
    """The id of one that was planned."""
    found: str = client.answer(drains.CreateDrain, "empty cell1", "--cell", "cell1")["id"]
    return found


def asked(cloud: Any) -> DrainRequest:
    """What the conductor was asked to plan."""
    found: DrainRequest = cloud.services.conductor.calls[-1][1]["request"]
    return found


def state(cloud: Any, drain_id: str) -> str:
    return store.get(cloud.services.api, drain_id).state.value


def test_what_was_asked_for_arrives(client: Client, cloud: Any) -> None:
    words = (
        "--cell old --cell older --host h --aggregate gen1 --zone z --project someone --server " + SERVER + " "
        "--to-cell new --to-host n --to-aggregate gen2 --how near_live --flavor gen1.small=gen2.small "
        "--flavor gen1.big=gen2.big --deadline 2099-03-01 --first smallest "
        "--confirm-after 24 --retries 0 --stop-after 7 --limit 9 --limit-per-target-host 1 --reason because"
    ).split()
    windows = ("--window", "mon-fri,sun 22:00-06:00 Europe/Zurich", "--window", "daily 01:00-05:00")
    client.run(drains.PlanDrain, *words, *windows)
    assert asked(cloud) == DrainRequest(
        "plan",
        Scope(["old", "older"], ["h"], ["gen1"], ["z"], ["project-of-that-name"], [SERVER]),
        Targets(["new"], ["n"], ["gen2"]),
        How.NEAR_LIVE,
        {"gen1.small": "gen2.small", "gen1.big": "gen2.big"},
        [Window([0, 1, 2, 3, 4, 6], "22:00", "06:00", "Europe/Zurich"), Window(list(range(7)), "01:00", "05:00")],
        datetime(2099, 3, 1, tzinfo=UTC),
        Limits(total=9, per_target_host=1),
        Afterwards.CONFIRM_LATER,
        24.0,
        0,
        7,
        First.SMALLEST,
        "because",
    )
    assert store.search(cloud.services.api) == []


def test_what_is_not_given_is_the_apis_to_choose(client: Client, cloud: Any) -> None:
    made = client.answer(drains.CreateDrain, "all of it", "--cell", "cell1", "--window", "mon 01:00-02:00")
    chosen = DrainRequest("all of it", Scope(["cell1"]), windows=[Window([0], "01:00", "02:00")])
    assert asked(cloud) == chosen
    # It says what it chose, then and later.
    for shown in (made, client.answer(drains.ShowDrain, "all of it")):
        assert {name: shown[name] for name in asdict(chosen)} == asdict(chosen)


def test_the_plan_is_printed_and_answered_as_json(client: Client) -> None:
    plan = client.answer(drains.PlanDrain, "--cell", "cell1")
    assert (plan["movable"], plan["blocked"], plan["bytes"], plan["fits"]) == (1, 1, 5 << 30, False)
    assert [each["instance_uuid"] for each in plan["servers"]] == [SERVER, STUCK]
    assert plan["shortages"][0]["missing"] == 1024
    table = client.run(drains.PlanDrain, "--cell", "cell1")
    for text in (
        "1 live, 1 can't go",
        "db: Its host is down. Start it.",
        "web: live, a -> b, 5.0 GiB, 5 min",
        "cell2 lacks 1 GiB of memory for 1 server",
        "2 h 2 min",
    ):
        assert text in table
    assert table.index("db: ") < table.index("web: ")


def test_one_that_is_kept_is_shown_with_its_plan(client: Client, cloud: Any) -> None:
    made = client.answer(drains.CreateDrain, "empty cell1", "--cell", "cell1", "--limit", "3")
    assert (made["name"], made["state"], made["limits"]["total"]) == ("empty cell1", "planned", 3)
    assert (made["plan_movable"], made["plan_fits"]) == (1, False)
    progress = made["progress"]
    assert (progress["servers"], progress["bytes_total"], progress["bytes_done"]) == ({"pending": 2}, 5 << 30, 0)
    shown = client.answer(drains.ShowDrain, "empty cell1")
    assert shown == {name: value for name, value in made.items() if not name.startswith("plan_")}
    table = client.run(drains.ShowDrain, made["id"])
    assert "2 pending" in table and "0 bytes of 5.0 GiB" in table and "cells: cell1" in table
    (listed,) = client.answer(drains.ListDrain, "--state", "planned", "--state", "done")
    assert (listed["ID"], listed["Servers"], listed["Bytes Total"]) == (made["id"], {"pending": 2}, 5 << 30)
    assert client.answer(drains.ListDrain, "--state", "done") == []
    assert state(cloud, made["id"]) == "planned"


def test_the_servers_of_a_drain_are_listed_page_by_page(client: Client, drain: str) -> None:
    found = client.answer(drains.ListDrainServer, drain, "--long")
    assert [(each["Server"], each["How"], each["Why"]) for each in found] == [
        (SERVER, "live", None),
        (STUCK, None, "Its host is down."),
    ]
    assert (found[0]["Target Cell"], found[0]["Bytes"], found[0]["Seconds"]) == ("cell2", 5 << 30, 300.0)
    assert "5.0 GiB" in client.run(drains.ListDrainServer, "empty cell1")
    (first,) = client.answer(drains.ListDrainServer, drain, "--limit", "1")
    (second,) = client.answer(drains.ListDrainServer, drain, "--marker", first["Server"])
    assert [first["Server"], second["Server"]] == [SERVER, STUCK]
    assert client.answer(drains.ListDrainServer, drain, "--state", "done") == []


@pytest.mark.usefixtures("drain")
def test_all_pages_are_followed(client: Client, cloud: Any) -> None:
    cloud.option("api", "max_limit", 1)
    assert len(client.answer(drains.ListDrainServer, "empty cell1")) == 2
    assert len(client.answer(drains.ListDrainServer, "empty cell1", "--limit", "2")) == 2


def test_a_drain_is_started_paused_resumed_and_cancelled(client: Client, cloud: Any, drain: str) -> None:
    for command, words, after in (
        (drains.StartDrain, (), "running"),
        (drains.PauseDrain, (), "paused"),
        (drains.ResumeDrain, (), "running"),
        (drains.SetDrain, ("--limit", "50", "--limit-per-cell-pair", "4"), "running"),
        (drains.CancelDrain, ("--undo",), "cancelling"),
        (drains.RollBackDrain, (), "rolling_back"),
    ):
        client.run(command, "empty cell1", *words)
        assert state(cloud, drain) == after
        assert cloud.services.conductor.calls[-1][0] == "look_at_drains"
    found = store.get(cloud.services.api, drain)
    assert found.undo and asdict(found.request.limits) == asdict(Limits(total=50, per_cell_pair=4))


def test_what_can_not_be_done_is_said(client: Client, drain: str) -> None:
    with pytest.raises(asking.Refused, match="only a paused one can be resumed"):
        client.run(drains.ResumeDrain, drain)
    with pytest.raises(asking.Refused, match="Drain nobody could not be found"):
        client.run(drains.ShowDrain, "nobody")
    with pytest.raises(Exception, match="give at least one limit"):
        client.run(drains.SetDrain, drain)
    with pytest.raises(Exception, match="Say what is to be moved"):
        client.run(drains.PlanDrain)
    client.run(drains.StartDrain, drain)
    with pytest.raises(Exception, match="1 of 1 drains failed"):
        client.run(drains.DeleteDrain, drain)


def test_two_of_a_name_are_distinguished_by_their_ids(client: Client, cloud: Any, drain: str) -> None:
    client.run(drains.CancelDrain, drain)
    client.run(drains.CreateDrain, "empty cell1", "--cell", "cell1")
    with pytest.raises(asking.NotAsked, match="There are 2 drains named empty cell1"):
        client.run(drains.ShowDrain, "empty cell1")
    client.run(drains.DeleteDrain, drain)
    assert client.answer(drains.ShowDrain, "empty cell1")["state"] == "planned"
    assert len(store.search(cloud.services.api)) == 1


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (drain_texts.window, "sometimes 22:00-06:00"),
        (drain_texts.window, "mon 22-06"),
        (drain_texts.window, ""),
        (drain_texts.deadline, "next march"),
        (drain_texts.flavor, "gen1.small"),
        (drain_texts.flavor, "=gen2.small"),
    ],
)
def test_what_can_not_be_read_is_refused_before_anything_is_asked(read: Any, text: str) -> None:
    with pytest.raises(drain_texts.Unreadable, match=text.split()[0] if text else "DAYS"):
        read(text)


def test_days_of_a_window_are_read_across_the_end_of_the_week() -> None:
    assert drain_texts.window("fri-mon 22:00-06:00")["days"] == [0, 4, 5, 6]
    assert drain_texts.window("Tue 00:00-23:59 UTC") == {
        "days": [1],
        "start": "00:00",
        "end": "23:59",
        "zone": "UTC",
    }


def test_times_without_a_zone_are_utc() -> None:
    assert drain_texts.deadline("2027-03-01") == "2027-03-01T00:00:00+00:00"
    assert drain_texts.deadline("2027-03-01T06:00+01:00") == "2027-03-01T06:00:00+01:00"


def test_a_running_one_does_not_end_before_its_last_hold(client: Client, cloud: Any, drain: str) -> None:
    until = (utcnow() + timedelta(days=2)).replace(microsecond=0)
    api = cloud.services.api
    store.transit(api, drain, DrainState.RUNNING, started_at=utcnow())
    owned = store.acquire(api, drain, "conductor", 60.0)
    assert owned is not None
    store.change(api, owned, pacing=Pacing(rate=5.0 * 2**20, climbs={"total": Climb(4)}))
    held, done = store.servers(api, drain)
    store.change_server(api, owned, held, not_before=until, seconds=0.0)
    store.change_server(api, owned, done, state=DrainServerState.DONE, bytes=409 << 20)
    end = f"1 of 2; the last not before {until.day} {until:%b %H:%M} UTC (hold)"

    found = client.answer(drains.ShowDrain, drain)["progress"]
    assert (found["ends_at"], found["delayed_by"]) == (until.isoformat(), "hold")
    table = client.run(drains.ShowDrain, drain)
    assert end in table and "rate: 5.0 MiB/s" in table and "total: 4 at once" in table
    assert "{" not in table
    assert end.partition("; ")[2] in client.run(drains.ListDrain)
    # A retry after a failure is no hold.
    store.change_server(api, owned, held, attempts=1, why="It failed.")
    assert client.answer(drains.ShowDrain, drain)["progress"]["delayed_by"] is None
    store.change_server(api, owned, held, why=f"{ON_HOLD} {until}")
    assert client.answer(drains.ShowDrain, drain)["progress"]["delayed_by"] == "hold"
