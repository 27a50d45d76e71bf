"""The tables of ``causeway``, on terminals of 80 and 120 columns: nothing that one copies or looks up is cut or broken."""

from __future__ import annotations

import io
import uuid as uuids
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from causeway.cli import audit, explain, timelines
from causeway.cli.drain import listed, plan
from causeway.model.audit import Disagreement, Report, Severity
from causeway.model.drains import DrainServer, DrainServerState, How, Plan

WHY = "No host of cell2 takes it: NUMATopologyFilter refused compute-rack12-node07.example.org [cell2] and 41 others."
HELP = "Map its flavor to one whose NUMA nodes fit there."
HOSTS = ("compute-rack12-node07.example.org", "compute-rack12-node08.example.org")
STEP = "CopyDisksWhileItRuns"
SERVERS = [str(uuids.uuid4()) for _number in range(3)]
WIDTHS = pytest.mark.parametrize("width", [80, 120])


def printed(width: int) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, width=width, highlight=False), stream


def check(stream: io.StringIO, width: int, *whole: str) -> str:
    """``whole``: what stands in one piece. Returns the text with lines of sentences joined."""
    text = stream.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for piece in whole:
        assert piece in text
    return " ".join(text.split())


def an_operation(server: str) -> dict[str, Any]:
    error = {"message": WHY, "details": None}
    transfer = {"bytes_done": 429916160, "bytes_total": 1073741824, "percent": 40, "round": 2, "seconds_left": 7}
    step = {
        "step": STEP, "phase": "do", "host": HOSTS[0], "state": "failed", "attempt": 3, "seconds": 12.5, "ended_at": None,
        "error": error, "first_error": None, **transfer,
    }  # fmt: skip
    return {
        "id": str(uuids.uuid4()), "instance_uuid": server, "recipe": "resize", "state": "stuck", "step": STEP,
        "waits_for": None, "is_cancel_requested": False, "is_cancellable": True, "error": error, "ended_at": None,
        "started_at": "2026-11-28T04:57:12", "owner": "conductor-1.example.org", "steps": [step, step | {"host": HOSTS[1]}],
        **transfer,
    }  # fmt: skip


@WIDTHS
def test_operations_fit_on_narrow_terminals(width: int) -> None:
    console, stream = printed(width)
    found = [an_operation(server) for server in SERVERS]
    timelines.show_overview(found, console)
    ids = [each["id"] for each in found]
    text = check(stream, width, *SERVERS, *ids, STEP, "resize", "conductor-1.example.org")
    assert text.count(WHY) == 1


@WIDTHS
def test_a_timeline_fits_on_narrow_terminals(width: int) -> None:
    console, stream = printed(width)
    timelines.show_timeline(an_operation(SERVERS[0]), console)
    text = check(stream, width, SERVERS[0], STEP, *HOSTS, "429,916,160")
    # In the title, and of both steps.
    assert text.count(WHY) == 2


@WIDTHS
def test_a_drain_fits_on_narrow_terminals(width: int) -> None:
    console, stream = printed(width)
    progress = {"servers": {"blocked": 3}, "bytes_total": 3 << 30, "bytes_done": 0}
    drain = {"id": str(uuids.uuid4()), "name": "empty", "state": "running", "note": None, "progress": progress}
    servers = [
        {
            "instance_uuid": server, "name": "web", "state": "blocked", "how": "near_live", "source_host": HOSTS[0],
            "target_host": HOSTS[1], "why": WHY, "help": HELP, "not_before": None,
        }
        for server in SERVERS
    ]  # fmt: skip
    listed.show_drain(drain, servers, console)
    text = check(stream, width, *SERVERS, *HOSTS, "near-live")
    assert text.count(f"{WHY} {HELP}") == 1


@WIDTHS
def test_a_plan_fits_on_narrow_terminals(width: int) -> None:
    console, stream = printed(width)
    servers = [
        DrainServer(
            drain_id="", instance_uuid=server, name="web", source_cell="cell1", source_host=HOSTS[0], target_cell="cell2",
            target_host=HOSTS[1], how=How.LIVE, bytes=5 << 30, seconds=300.0, pause=0.5,
        )
        for server in SERVERS
    ]  # fmt: skip
    for server in servers[1:]:
        server.state, server.why, server.help = DrainServerState.BLOCKED, WHY, HELP
    plan.show(Plan(servers, datetime.now(UTC), 1, 2), console)
    text = check(stream, width, *SERVERS, *HOSTS)
    assert text.count(f"{WHY} {HELP}") == 1


@WIDTHS
def test_an_explanation_fits_on_narrow_terminals(width: int) -> None:
    console, stream = printed(width)
    refused = {
        "cell": "cell2", "fits": False, "chosen": False, "checks": [], "note": "", "values": {}, "needs": None,
        "refused_by": "NUMATopologyFilter", "reason": WHY,
    }  # fmt: skip
    checks = [{"name": "claim", "passed": False, "message": WHY}]
    moves: dict[str, Any] = {
        "disk_gb": 0, "disk_bytes": None, "volumes": [], "ports": [], "note": None, "travel": None, "memory": None,
    }  # fmt: skip
    found = {
        "server": SERVERS[0], "source_host": HOSTS[0], "source_cell": "cell1", "flavor": "gen1.small", "moves": moves,
        "refusal": None, "silent_cells": [], "summary": "No host fits.",
        "candidates": [refused | {"host": HOSTS[0], "checks": checks}, refused | {"host": HOSTS[1]}],
    }  # fmt: skip
    explain.show(found, console)
    text = check(stream, width, SERVERS[0], *HOSTS)
    assert text.count(f"NUMATopologyFilter: {WHY}") == 1


@WIDTHS
def test_an_audit_fits_on_narrow_terminals(width: int) -> None:
    console, stream = printed(width)
    found = [
        Disagreement("duplicate_allocation_of_server", Severity.ERROR, "a resource", server, WHY) for server in SERVERS
    ]
    audit.show(Report(datetime.now(UTC), disagreements=found), console)
    check(stream, width, *SERVERS, "duplicate_allocation_of_server")
