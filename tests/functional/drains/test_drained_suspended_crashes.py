"""Somebody dies while a suspended server leaves its cell, or an answer is lost: it is in one place, with its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway import errors
from causeway.rpc.transport import Verdict
from tests.functional.servers.dying_threads import THREADS_DIE

from .drains_cloud import DrainsCloud
from .suspended_servers import check, suspended
from .test_left_behind import ELSEWHERE, THERE, planned
from .test_left_behind_crashes import CLOUD as CLOUD

pytestmark = THREADS_DIE
# The steps in which it is another thing than a guest that was paused.
STEPS = [
    f"near_live_migration.{step}.do.{side}"
    for step in ("SaveGuest", "WakeGuest", "SwitchInstanceMapping", "LetGuestGoOn", "EndNearLiveMigration")
    for side in ("before", "after")
]
UNDOING = [
    f"near_live_migration.{step}.undo.{side}" for step in ("SaveGuest", "WakeGuest") for side in ("before", "after")
]
FORWARD = ("save_guest_at_source", "wake_guest_at_dest", "let_guest_go_on")
ORDERS = [
    *(f"compute.{name}.{side}" for name in FORWARD for side in ("before", "after")),
    *(f"driver.{name}.{side}" for name in ("save_memory", "define_suspended") for side in ("before", "after")),
    "disk.fetch.after",
]


@pytest.mark.parametrize("point", [*STEPS, *ORDERS])
def test_a_suspended_server_moves_with_its_memory_though_somebody_dies(
    cloud: DrainsCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, memory = suspended(cloud)
    drain, _plan = planned(cloud)
    dies_at(point)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert cloud.row(drain, server)["attempts"] == 0
    check(cloud, server, memory, "cell2")


@pytest.mark.parametrize("verdict", [Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY])
@pytest.mark.parametrize("method", FORWARD)
def test_a_message_is_lost(cloud: DrainsCloud, method: str, verdict: Verdict) -> None:
    server, memory = suspended(cloud)
    drain, _plan = planned(cloud)
    cloud.lose(method, verdict)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    check(cloud, server, memory, "cell2")


@pytest.mark.parametrize("point", UNDOING)
def test_the_undo_of_a_suspended_move_survives_the_death_of_a_conductor(
    cloud: DrainsCloud, dies_at: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    server, memory = suspended(cloud)
    make_it_fail(cloud, monkeypatch)
    dies_at(point)
    undone(cloud, server, memory, monkeypatch)


@pytest.mark.parametrize("verdict", [Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY])
@pytest.mark.parametrize("method", ["wake_guest_at_source", "drop_move_at_dest"])
def test_a_message_is_lost_while_it_is_undone(
    cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch, method: str, verdict: Verdict
) -> None:
    server, memory = suspended(cloud)
    make_it_fail(cloud, monkeypatch)
    cloud.lose(method, verdict)
    undone(cloud, server, memory, monkeypatch)


def make_it_fail(cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest is at its target, suspended, and then its target does not say so."""
    for host in (THERE, ELSEWHERE):
        works = cloud.driver(host).define_suspended

        def define(spec: Any, works: Any = works) -> None:
            works(spec)
            raise errors.GuestFailed("The hypervisor says that it failed.")

        monkeypatch.setattr(cloud.driver(host), "define_suspended", define)


def undone(cloud: DrainsCloud, server: Any, memory: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    drain, _plan = planned(cloud, retries=0)
    cloud.act(drain, "start")
    row = cloud.becomes_row(drain, server, "failed")
    assert "says that it failed" in row["why"]
    monkeypatch.undo()
    check(cloud, server, memory, "cell1")
