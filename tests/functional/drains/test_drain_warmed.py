"""Disks of servers that go warm are copied before a window opens; in it only their last changes are left."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from causeway.drains import runner, windows
from causeway.drains.windows import Opening
from causeway.model.drains import How, Limits, Window
from causeway.model.operations import CONFIRM_RESIZE
from causeway.model.sagas import SagaState, StepPhase, StepState
from causeway.moves.memory import MoveMemory
from causeway.moves.steps import warm
from causeway.store.api import journal
from causeway.store.database import utcnow

from .drains_cloud import DrainsCloud, until

CLOUD: dict[str, Any] = {
    "overrides": {
        "drains": {"interval": 0.1, "retry_pause": 0.1},
        "moves": {"held_round_interval": 1.0, "lease": 1.0},
    }
}
ONE, TWO, THERE = "cell1-host1", "cell1-host2", "cell2-host1"
WEEKLY = [Window([0], "00:00", "00:01")]

pytestmark = pytest.mark.embedded("says when windows open")


def opens(monkeypatch: pytest.MonkeyPatch, seconds: float) -> datetime:
    """The next window opens so many seconds from now. Returns when that is."""
    start = utcnow() + timedelta(seconds=seconds)
    opening = Opening(start, start + timedelta(hours=1))
    monkeypatch.setattr(windows, "openings", lambda _windows, _after: iter([opening]))
    return start


def half_an_hour_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what looks at the clock to know whether a window is open. For all else no time has passed: no host is down."""
    for module in (runner, warm):
        monkeypatch.setattr(module, "utcnow", lambda: utcnow() + timedelta(hours=0.5))


def memory_of(cloud: DrainsCloud, server: Any) -> MoveMemory:
    return msgspec.convert(cloud.moves(server)[-1].data, MoveMemory)


def becomes_held(cloud: DrainsCloud, drain: str, server: Any) -> None:
    row = cloud.becomes_row(drain, server, "asked")
    until(
        lambda: cloud.row(drain, server)["why"],
        lambda why: why and "stays at its source until" in why,
        f"{row} to be held",
    )


def test_disks_are_copied_before_the_window_and_the_rest_goes_when_it_opens(
    cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.on(ONE)
    start = opens(monkeypatch, 1800.0)
    drain = cloud.started({server.id: (THERE, How.WARM)}, windows=WEEKLY)
    becomes_held(cloud, drain, server)
    memory = memory_of(cloud, server)
    assert memory.warm is not None and memory.held_until == start
    assert (cloud.show(server).compute_host, cloud.show(server).status) == (ONE, "RESIZE")
    opened = utcnow()
    half_an_hour_later(monkeypatch)
    cloud.becomes_drain(drain, "done")
    assert cloud.host_of(server) == THERE
    (move,) = [move for move in cloud.moves(server) if move.recipe != CONFIRM_RESIZE]
    steps = {step.step: step for step in journal.steps(cloud.parts.api_database, move.id)}
    off, copied = steps["HandOver"].started_at, steps["CopyWhileRunning"].started_at
    assert off is not None and copied is not None
    assert copied < opened <= off


def test_what_is_held_keeps_nobody_else_from_being_copied_and_is_undone_without_its_guest_noticing(
    cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, off = cloud.on(ONE), cloud.on(ONE), cloud.on(ONE, off=True)
    opens(monkeypatch, 1800.0)
    plan: dict[str, tuple[str | None, How | None]] = {
        first.id: (THERE, How.WARM),
        second.id: (THERE, How.WARM),
        off.id: (THERE, How.COLD),
    }
    drain = cloud.started(plan, limits=Limits(total=1), windows=WEEKLY)
    for server in (first, second):
        becomes_held(cloud, drain, server)
    # It has nothing that could be copied before.
    assert cloud.row(drain, off)["state"] == "pending"
    cloud.act(drain, "cancel", {"undo": True})
    assert cloud.becomes_drain(drain, "cancelled")["progress"]["servers"] == {"pending": 3}
    for server in (first, second):
        shown = cloud.show(server)
        assert (shown.status, shown.task_state, shown.compute_host) == ("ACTIVE", None, ONE)
        (move,) = cloud.moves(server)
        assert move.state is SagaState.FAILED
        begun = {step.step for step in journal.steps(cloud.parts.api_database, move.id)}
        assert "HandOver" not in begun
    assert not list(cloud.parts.state.path.rglob("rounds/*.*"))


def test_a_held_move_makes_a_round_now_and_then_whoever_runs_it(
    cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.on(ONE)
    opens(monkeypatch, 1800.0)
    drain = cloud.started({server.id: (THERE, How.WARM)}, windows=WEEKLY)
    becomes_held(cloud, drain, server)
    api = cloud.parts.api_database

    def attempts() -> int:
        (move,) = cloud.moves(server)
        step = journal.steps(api, move.id)[-1]
        assert (step.step, step.phase) == ("CopyWhileRunning", StepPhase.DO)
        return step.attempt if step.state is StepState.FAILED else 0

    before = attempts()
    until(attempts, lambda found: found > before + 1, "rounds to be made")
    until(lambda: cloud.moves(server)[0].owner, lambda owner: owner is None, "nobody to have it")
    cloud.act(drain, "cancel", {"undo": True})
    cloud.becomes_drain(drain, "cancelled")


def test_a_user_may_delete_a_server_whose_move_is_held(cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.on(ONE)
    opens(monkeypatch, 1800.0)
    cloud.parts.conf.set_override("held_round_interval", 600.0, group="moves")
    try:
        drain = cloud.started({server.id: (THERE, How.WARM)}, windows=WEEKLY)
        becomes_held(cloud, drain, server)
        cloud.member.compute.delete_server(server.id)
        cloud.becomes_row(drain, server, "passed_over")
        cloud.becomes_drain(drain, "done")
    finally:
        cloud.parts.conf.clear_override("held_round_interval", group="moves")


def test_nothing_is_copied_long_before_a_window(cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.on(ONE)
    opens(monkeypatch, 3700.0)
    drain = cloud.started({server.id: (THERE, How.WARM)}, windows=WEEKLY)
    cloud.sees(drain)
    assert cloud.states(drain) == {"pending": 1} and cloud.moves(server) == []
