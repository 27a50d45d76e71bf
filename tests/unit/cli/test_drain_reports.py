"""The report of a drain says what happened, whatever servers are named like."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from datetime import datetime, timedelta
from typing import Any

import msgspec

from causeway.cli.drain.reports import as_json, as_text, report_of
from causeway.model.drains import Drain, DrainRequest, DrainServer, DrainServerState, DrainState, How, Scope

BEGAN = datetime(2027, 3, 1, 22)
GIB = 2**30


def server(number: int, state: DrainServerState, **fields: Any) -> DrainServer:
    return DrainServer(drain_id="d", instance_uuid=f"server-{number}", state=state, source_host="cell1-host1", **fields)


def drained() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    drain = Drain(
        id="d",
        request=DrainRequest("empty <cell1>", Scope(cells=["cell1"]), reason="old hardware"),
        state=DrainState.DONE,
        started_at=BEGAN,
        ended_at=BEGAN + timedelta(hours=2, minutes=5),
    )
    arrived = [
        server(
            number,
            DrainServerState.DONE,
            name="a|b",
            how=How.LIVE if number < 3 else How.COLD,
            bytes=number * GIB,
            attempts=1 + (number == 4),
            began_at=BEGAN + timedelta(minutes=number),
            ended_at=BEGAN + timedelta(minutes=3 * number),
        )
        for number in range(1, 5)
    ]
    left = server(9, DrainServerState.BLOCKED, name="<b>stays</b>", why="cell2 is full", help="add a host")
    return msgspec.to_builtins(drain), [msgspec.to_builtins(each) for each in [*arrived, left]]


def test_the_report_of_a_drain_counts_what_arrived_and_says_what_was_left() -> None:
    report = report_of(*drained())
    assert (report.arrived, len(report.left), report.retried) == (4, 1, 1)
    assert report.bytes_moved == 10 * GIB
    assert report.seconds == 7500
    assert {(way.how, way.servers, way.middle) for way in report.ways} == {("live", 2, 180.0), ("cold", 2, 420.0)}


def test_the_page_is_whole_and_what_users_wrote_is_no_markup() -> None:
    page = as_text(report_of(*drained()), "drain.html.j2")
    assert "<b>stays" not in page
    assert "&lt;b&gt;stays" in page
    root = ElementTree.fromstring(
        page.removeprefix("<!doctype html>")
        .replace('<meta charset="utf-8">', "")
        .replace('<meta name="viewport" content="width=device-width, initial-scale=1">', "")
    )
    plots = root.findall(".//svg")
    assert [len(plot.findall("polyline")) for plot in plots] == [1, 0]
    assert len(plots[1].findall("rect")) == 4
    assert "http" not in page, "nothing is loaded from elsewhere"


def test_markdown_has_a_row_for_each_server() -> None:
    text = as_text(report_of(*drained()), "drain.md.j2")
    rows = [line for line in text.splitlines() if "server-1 " in line]
    assert rows == ["| a\\|b server-1 | cell1-host1 |  | live | 1.0 GiB | 2027-03-01 22:01:00 | 2 min |  |  | done |"]
    assert "cell2 is full | add a host |" in text


def test_json_is_the_same_without_drawings() -> None:
    reported = as_json(report_of(*drained()))
    assert reported["states"] == {"blocked": 1, "done": 4}
    assert "curve" not in reported


def test_one_that_was_never_started_has_a_report() -> None:
    drain, servers = drained()
    del drain["started_at"], drain["ended_at"]
    for each in servers:
        each |= {"state": "pending", "began_at": None, "ended_at": None}
    report = report_of(drain, servers)
    assert report.curve is None
    assert "0 of 5 servers arrived" in as_text(report, "drain.html.j2")
