"""Owners know: what is notified of drains, what a server's history says of one, and who may ask that a server waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causeway.model.drains import Afterwards, How, Limits
from causeway.store.cell import instances
from tests.functional.servers.moves_cloud import until
from tests.functional.servers.notified import CONFIGURATION, heard_by

from .drains_cloud import WAYS_TO_HOLD, DrainsCloud, ask_to_wait

CLOUD: dict[str, Any] = {
    "config_files": [str(CONFIGURATION)],
    "overrides": {
        "moves": {"lease": 1.5, "first_pause": 0.1, "stuck_retry_interval": 0.5},
        "drains": {"interval": 0.1, "retry_pause": 0.1},
        "fault_injection": {"enabled": True},
    },
}
pytestmark = [
    pytest.mark.embedded("acts at points of this process"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]
ONE, TWO = "cell1-host1", "cell1-host2"
THERE, ELSEWHERE = "cell2-host1", "cell2-host2"


class Consumer:
    """Hears what is notified of drains: (event, the server's id or None, payload)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.heard: list[tuple[str, str | None, dict[str, Any]]] = []

    def info(self, _context: Any, _publisher: str, event: str, payload: Any, _metadata: Any) -> None:
        if event.startswith("causeway.drain."):
            assert payload["nova_object.namespace"] == "causeway" and payload["nova_object.version"] == "1.0"
            data = payload["nova_object.data"]
            with self._lock:
                self.heard.append((event.removeprefix("causeway.drain."), data.get("instance_uuid"), data))

    error = info

    def of(self, uuid: str | None) -> list[tuple[str, str]]:
        return [(event, data["state"]) for event, concerned, data in self.heard if concerned == uuid]


@pytest.fixture(scope="module")
def listening(module_cloud: DrainsCloud) -> Iterator[Consumer]:
    consumer = Consumer()
    with heard_by(module_cloud.parts.conf, consumer):
        yield consumer


@pytest.fixture
def consumer(listening: Consumer) -> Consumer:
    listening.heard.clear()
    return listening


def hears(consumer: Consumer, uuid: str | None, *wanted: tuple[str, str]) -> None:
    until(lambda: consumer.of(uuid), lambda heard: heard[-1:] == list(wanted[-1:]), "the end to be notified")
    assert consumer.of(uuid) == list(wanted)


def test_a_drain_and_each_step_of_its_servers_are_notified_once(cloud: DrainsCloud, consumer: Consumer) -> None:
    live, warm = cloud.on(ONE, "live"), cloud.on(TWO, "warm")
    drain = cloud.started({live.id: (THERE, How.NEAR_LIVE), warm.id: (THERE, How.WARM)}, reason="The cell is returned.")
    cloud.becomes_drain(drain, "done")
    hears(consumer, None, ("start", "running"), ("end", "done"))
    hears(consumer, live.id, ("server.start", "asked"), ("server.end", "done"))
    hears(consumer, warm.id, ("server.start", "asked"), ("server.moved", "moved"), ("server.end", "done"))
    _event, _uuid, data = next(each for each in consumer.heard if each[1] == warm.id)
    assert (data["drain_uuid"], data["reason"]) == (drain, "The cell is returned.")
    assert (data["source_host"], data["target_host"], data["how"]) == (TWO, THERE, "warm")
    assert data["request_id"] == cloud.moves(warm)[0].request_id


def test_what_administrators_do_with_it_is_notified(cloud: DrainsCloud, consumer: Consumer) -> None:
    server = cloud.on(ONE)
    drain = cloud.started({server.id: (THERE, How.WARM)}, afterwards=Afterwards.OWNERS)
    cloud.becomes_drain(drain, "done")
    cloud.act(drain, "rollback")
    cloud.becomes_drain(drain, "rolled_back")
    hears(consumer, None, ("start", "running"), ("end", "done"), ("rollback", "rolling_back"), ("end", "rolled_back"))
    hears(consumer, server.id, ("server.start", "asked"), ("server.moved", "moved"), ("server.end", "reverted"))


def test_failures_are_reported(cloud: DrainsCloud, consumer: Consumer) -> None:
    server = cloud.on(ONE)
    cloud.without_patience()
    cloud.break_driver([THERE, ELSEWHERE], "spawn")
    drain = cloud.started({server.id: (THERE, How.WARM)}, retries=1, stop_after=1)
    cloud.becomes_drain(drain, "paused")
    cloud.becomes_row(drain, server, "failed")
    hears(consumer, None, ("start", "running"), ("pause", "paused"))
    hears(
        consumer,
        server.id,
        ("server.start", "asked"),
        ("server.error", "pending"),
        ("server.start", "asked"),
        ("server.error", "failed"),
    )
    assert "broke in spawn" in consumer.heard[-1][2]["why"] or "broke in spawn" in consumer.heard[-2][2]["why"]


@pytest.mark.parametrize("point", ["drain.move.noted", "drain.move.after", "drain.confirm.after"])
def test_a_conductor_that_takes_over_notifies_of_nothing_twice(
    cloud: DrainsCloud, consumer: Consumer, dies_at: Callable[[str], None], point: str
) -> None:
    server = cloud.on(ONE)
    dies_at(point)
    drain = cloud.started({server.id: (THERE, How.WARM)})
    cloud.becomes_drain(drain, "done")
    asked = [("server.start", "asked")]
    # The first request was never made: another one was.
    again = asked if point == "drain.move.noted" else []
    hears(consumer, server.id, *asked, *again, ("server.moved", "moved"), ("server.end", "done"))
    hears(consumer, None, ("start", "running"), ("end", "done"))


# --- the server's history


def history(cloud: DrainsCloud, server: Any) -> list[dict[str, Any]]:
    """As its owner sees it, oldest first."""
    answer = cloud.member.compute.get(f"/servers/{server.id}/os-instance-actions", microversion="2.62")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["instanceActions"]
    return found[::-1]


@pytest.mark.parametrize("reason", ["The cell is returned.", None])
def test_an_owner_reads_why_a_server_was_moved(cloud: DrainsCloud, reason: str | None) -> None:
    server = cloud.on(ONE)
    drain = cloud.started({server.id: (THERE, How.WARM)}, name="spring", reason=reason)
    cloud.becomes_drain(drain, "done")
    found = [(each["action"], each["message"]) for each in history(cloud, server)]
    said = f"Drain spring ({drain}) moves the server away from where it is" + (f": {reason}" if reason else ".")
    assert found == [("create", None), ("drain", said), ("migrate", None), ("confirmResize", None)]
    (entry,) = (each for each in history(cloud, server) if each["action"] == "drain")
    shown = cloud.member.compute.get(
        f"/servers/{server.id}/os-instance-actions/{entry['request_id']}", microversion="2.62"
    )
    assert shown.json()["instanceAction"]["message"] == said


def test_a_server_s_history_says_a_drain_once_however_often_the_move_is_tried(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    cloud.without_patience()
    cloud.break_driver([THERE, ELSEWHERE], "spawn", times=1)
    long = "x" * 300
    drain = cloud.started({server.id: (THERE, How.WARM)}, reason=long)
    cloud.becomes_drain(drain, "done")
    found = [each for each in history(cloud, server) if each["action"] == "drain"]
    assert len(found) == 1 and len(found[0]["message"]) == 255
    assert [each["action"] for each in history(cloud, server)].count("migrate") == 2


# --- holds


@pytest.mark.parametrize("way", WAYS_TO_HOLD)
def test_a_hold_that_is_no_date_is_refused(cloud: DrainsCloud, way: str) -> None:
    server = cloud.on(ONE)
    refused = ask_to_wait(cloud, server, way, "soon")
    assert refused.status_code == 400
    assert 'Its property causeway:hold says "soon", which is no date' in refused.json()["badRequest"]["message"]
    assert ask_to_wait(cloud, server, "update", "2027-03-05T18:00:00+01:00").status_code == 200


def test_an_owners_hold_keeps_a_server_and_no_other_one(cloud: DrainsCloud) -> None:
    held, other = cloud.on(ONE), cloud.on(ONE)
    assert ask_to_wait(cloud, held, "update").status_code == 200
    drain = cloud.started({each.id: (THERE, How.WARM) for each in (held, other)}, limits=Limits(total=1))
    cloud.becomes_row(drain, other, "done")
    row = until(lambda: cloud.row(drain, held), lambda found: found["why"], "it to be held")
    assert row["why"] == "Its owner asked to wait until 2999-01-01 00:00 UTC."
    instances.update(cloud.cell("cell1"), held.id, metadata={})
    cloud.becomes_drain(drain, "done")
