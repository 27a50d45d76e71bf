"""While the disks of a running guest are copied, everybody can see in which round, and how long that takes yet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from causeway.compute.host import transfer_progress
from causeway.conductor.cells.transfers import Transfers
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import journal
from causeway.store.database import utcnow
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.operations.test_cancel import under_way
from tests.functional.servers.operations.test_watched_operations import operations, run
from tests.functional.servers.warm.test_warm_moves import RECEIVE, has_moved, resize, server, source, way

__all__ = ["server", "way"]

pytestmark = pytest.mark.embedded("looks into hosts, and at calls")


def in_rounds(cloud: Cloud, server: Any, patches: pytest.MonkeyPatch) -> None:
    """Its guest writes something before each of three rounds."""
    cloud.option("warm_round_seconds", 0.0, "moves")
    cloud.option("warm_rounds", 3, "moves")
    host = source(cloud, server)

    def begin(*args: Any, works: Any = host.begin_round, **more: Any) -> Any:
        host.guest_write(server.id, "meanwhile")
        return works(*args, **more)

    patches.setattr(host, "begin_round", begin)


def test_the_round_is_shown_and_how_long_it_takes_yet(
    cloud: Cloud, server: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, Any, str]] = []
    rounds = []

    def on_send(message: Outgoing) -> Verdict:
        if message.method == "begin_round":
            rounds.append(message)
        if message.method == RECEIVE[way] and len(rounds) == 2 and not seen:
            token = message.arguments["token"]
            Transfers(cloud.parts.api_database).report(token, 25, 100)
            of_operation = journal.OPERATIONS.c.id == token.operation_id
            with cloud.parts.api_database.write() as connection:
                steps = connection.execute(sa.select(journal.OPERATIONS.c.steps).where(of_operation)).scalar_one()
                steps[-1]["bytes_since"] = (utcnow() - timedelta(minutes=1)).isoformat()
                connection.execute(journal.OPERATIONS.update().where(of_operation).values(steps=steps))
            (operation,), (migration,) = operations(cloud, server), under_way(cloud, server)
            seen.append((operation, migration, run(cloud, "operation", "show", server.id).output))
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    in_rounds(cloud, server, monkeypatch)
    resize(cloud, server, way)
    has_moved(cloud, server)
    ((operation, migration, table),) = seen
    assert (operation["step"], operation["round"], operation["percent"]) == ("CopyWhileRunning", 2, 25)
    assert 180 <= operation["seconds_left"] < 240
    assert operation["steps"][-1]["round"] == 2
    assert operation["steps"][-1]["seconds_left"] >= operation["seconds_left"]
    assert (migration["causeway:round"], migration["causeway:percent"]) == (2, 25)
    assert 180 <= migration["causeway:seconds_left"] < 240
    assert "25 of 100 (25 %), round 2, about 18" in table
    # Of what has ended the bytes of all rounds are shown.
    ended = next(step for step in operations(cloud, server, everything=True)[0]["steps"] if step["round"] is not None)
    assert (ended["step"], ended["round"], ended["seconds_left"]) == ("CopyWhileRunning", 3, None)
    assert ended["bytes_done"] == cloud.moves(server)[0].data["warm"]["sent"]
    assert f"{ended['bytes_done']:,} in 3 rounds" in run(cloud, "operation", "show", server.id).output


def test_what_a_host_reports_leads_to_the_end_of_the_round(
    cloud: Cloud, server: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_progress, "REPORT_INTERVAL", 0.0)
    reports: list[tuple[int, int]] = []

    def on_send(message: Outgoing) -> Verdict:
        if message.method == "report_progress" and message.arguments["token"].step == "CopyWhileRunning":
            reports.append((message.arguments["bytes_done"], message.arguments["bytes_total"]))
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert [done for done, _total in reports] == sorted(done for done, _total in reports)
    assert reports[-1][0] == reports[-1][1] > 0


def test_a_step_without_rounds_has_none(cloud: Cloud, server: Any) -> None:
    cloud.option("warm", "never", "moves")
    resize(cloud, server, "directly")
    has_moved(cloud, server)
    (move,) = operations(cloud, server, everything=True)
    assert {step["round"] for step in move["steps"]} == {None}


@pytest.mark.parametrize(
    ("written", "copied"),
    [
        ([4000, 8000, 16000, 32000], 2),
        ([4000, 3000, 2000, 1000], 5),
        # Something that it does now and then.
        ([16000, 1000, 8000, 1000], 5),
    ],
    ids=["more and more", "less and less", "now and then"],
)
def test_rounds_end_if_the_guest_writes_faster_than_they_are_copied(
    cloud: Cloud, server: Any, monkeypatch: pytest.MonkeyPatch, written: list[int], copied: int
) -> None:
    """Of what was not copied nothing is lost."""
    cloud.option("warm_round_seconds", 0.0, "moves")
    host, received, left = source(cloud, server), [], [0, *written]

    def begin(*args: Any, works: Any = host.begin_round, **more: Any) -> Any:
        size = left.pop(0)
        host.guest_write(server.id, f"{size}: " + "x" * size)
        return works(*args, **more)

    def on_send(message: Outgoing) -> Verdict:
        if message.method == "receive_round":
            received.append(message)
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    monkeypatch.setattr(host, "begin_round", begin)
    cloud.break_driver(list(cloud.parts.computes), "export_disk")
    resize(cloud, server, "directly")
    has_moved(cloud, server)
    assert len(received) == copied
    assert left == written[copied:]
    there = "\n".join(source(cloud, server).guest_read(server.id))
    begun = [0, *written][: len(written) + 1 - len(left)]
    assert all(f"{size}: " + "x" * size in there for size in begun)


def test_a_source_that_begins_anew_again_and_again_is_copied_each_time(
    cloud: Cloud, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lost what it knew of earlier rounds: without this one the target has nothing to which changes could be added."""
    cloud.option("warm_round_seconds", 0.0, "moves")
    host, received = source(cloud, server), []

    def begin(*args: Any, works: Any = host.begin_round, **more: Any) -> Any:
        host.guest_write(server.id, "meanwhile")
        return works(*args, **more | {"since": None})

    def on_send(message: Outgoing) -> Verdict:
        if message.method == "receive_round":
            received.append(message.arguments["copied"].since)
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    monkeypatch.setattr(host, "begin_round", begin)
    cloud.break_driver(list(cloud.parts.computes), "export_disk")
    resize(cloud, server, "directly")
    has_moved(cloud, server)
    assert received == [None] * 5
    assert source(cloud, server).guest_read(server.id).count("meanwhile") == 5
