"""``causeway drain``, from the plan to the report, as an operator types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from causeway.cli.main import cli

from .drains_cloud import CLOUD as CLOUD
from .drains_cloud import DrainsCloud

ONE, THERE = "cell1-host1", "cell2-host1"


def run(cloud: DrainsCloud, *arguments: str, status: int = 0) -> Result:
    command = ["drain", *arguments, "--state-dir", str(cloud.parts.state.path)]
    result = CliRunner().invoke(cli, command, env={"COLUMNS": "220"})
    assert result.exit_code == status, result.output
    return result


def answer(cloud: DrainsCloud, *arguments: str) -> Any:
    return json.loads(run(cloud, *arguments, "--json").output)


def create(cloud: DrainsCloud, name: str, *servers: Any, more: tuple[str, ...] = ()) -> Any:
    named = [word for server in servers for word in ("--server", server.id)]
    return answer(cloud, "create", name, *named, "--to-host", THERE, *more)["drain"]


def test_a_drain_is_planned_run_and_reported_by_commands(cloud: DrainsCloud, tmp_path: Path) -> None:
    running, off = cloud.on(ONE, "running"), cloud.on(ONE, "off", off=True)
    said = run(cloud, "create", "story", "--server", running.id, "--server", off.id, "--to-host", THERE).output
    assert "All 2 servers can go" in said and "causeway drain start story" in said
    assert "story" in run(cloud, "list").output
    assert cloud.host_of(running) == ONE

    assert "is running" in run(cloud, "start", "story").output
    lines = [
        json.loads(line) for line in run(cloud, "watch", "story", "--json", "--interval", "0.1").output.splitlines()
    ]
    assert lines[-1]["state"] == "done"
    assert lines[-1]["progress"]["servers"]["done"] == 2
    assert cloud.host_of(running) == cloud.host_of(off) == THERE
    assert "2 of 2 servers" in run(cloud, "watch", "story").output

    text = run(cloud, "report", "story").output
    assert "running" in text and THERE in text
    page = tmp_path / "report.html"
    run(cloud, "report", "story", "--format", "html", "--output", str(page))
    assert "<svg" in page.read_text()
    assert answer(cloud, "report", "story")["arrived"] == 2
    run(cloud, "delete", "story")
    assert answer(cloud, "list") == []


def test_limits_pause_resume_and_cancel_work_by_commands(cloud: DrainsCloud) -> None:
    drain = create(cloud, "slow", cloud.on(ONE), more=("--window", "mon 00:00-00:01", "--limit", "1"))
    assert answer(cloud, "set", "slow")["total"] == 1
    changed = answer(cloud, "set", "slow", "--limit", "7", "--limit-per-source-host", "3")
    assert (changed["total"], changed["per_source_host"]) == (7, 3)
    assert cloud.shown(drain["id"])["request"]["limits"]["total"] == 7
    for verb, state in (("start", "running"), ("pause", "paused"), ("resume", "running")):
        assert answer(cloud, verb, "slow")["state"] == state
    assert "cancel it first" in run(cloud, "delete", "slow", status=2).output
    assert answer(cloud, "cancel", "slow", "--undo")["state"] == "cancelling"
    cloud.becomes_drain(drain["id"], "cancelled")
    assert "0 of 1 servers have arrived" in run(cloud, "show", "slow").output
    assert cloud.closed() == {}
    # Somebody waits for what will not come any more.
    run(cloud, "watch", "slow", status=1)


def test_names_of_the_release_before_work(cloud: DrainsCloud) -> None:
    former = ("--at-once", "2", "--per-target-host", "1", "--mib-per-second", "1.5", "--afterwards", "confirm_later")
    made = create(cloud, "former", cloud.on(ONE), more=(*former, "--confirm-after", "1"))
    limits = made["request"]["limits"]
    assert (limits["total"], limits["per_target_host"], limits["bytes_per_second"]) == (2, 1, 3 << 19)
    assert answer(cloud, "limits", "former", "--per-cell-pair", "4") == limits | {"per_cell_pair": 4}
    assert " limits " not in CliRunner().invoke(cli, ["drain", "--help"]).output
    assert "--at-once" not in run(cloud, "set", "--help").output


def test_a_drain_is_rolled_back(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE, off=True)
    drain = create(cloud, "there and back", server, more=("--afterwards", "owners"))
    run(cloud, "start", "there and back")
    cloud.becomes_row(drain["id"], server, "moved")
    assert answer(cloud, "rollback", "there and back")["state"] == "rolling_back"
    cloud.becomes_drain(drain["id"], "rolled_back")
    assert cloud.host_of(server) == ONE


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("start", "nothing"), "Drain nothing could not be found."),
        (("set", "nothing", "--limit", "2"), "Drain nothing could not be found."),
        (("set", "given", "--limit", "-2"), "-2"),
        (("resume", "given"), "only a paused one can be resumed"),
        (("pause", "given"), "planned"),
        (("report", "nothing"), "Drain nothing could not be found."),
        (("create", "empty"), "Say what is to be moved"),
    ],
)
def test_what_is_wrong_is_said(cloud: DrainsCloud, arguments: tuple[str, ...], said: str) -> None:
    if "given" in arguments:
        create(cloud, "given", cloud.on(ONE))
    assert said in run(cloud, *arguments, status=2).output
