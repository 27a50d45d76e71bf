"""Somebody dies while the records of a server go to another cell, or is slow: they are whole, and in one cell."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from causeway import errors
from causeway.faults import points
from causeway.store.api import journal, wanted_operations
from causeway.store.cell import copies
from tests.functional.servers.dying_threads import THREADS_DIE
from tests.functional.servers.moves_cloud import another_conductor
from tests.functional.servers.slow_conductors import take_over

from .drains_cloud import DYING, DrainsCloud, until
from .test_left_behind import ONE, act, cell_of, planned, shelved

CLOUD = DYING
pytestmark = THREADS_DIE
POINTS = [point for point in points.step_points() if point.startswith("move_records.")]
STEPS = [point for point in POINTS if ".do." in point]
UNDOING = [point for point in POINTS if ".do." not in point]
ASKING = ["drain.move.before", "drain.move.noted", "drain.move.after"]


def with_records(cloud: DrainsCloud) -> tuple[Any, dict[str, Any]]:
    """A shelved server, and how it is shown."""
    server = cloud.on(ONE)
    cloud.attach(server, cloud.volume())
    cloud.member.compute.set_server_metadata(server, owner="me")
    shelved(cloud, server)
    return server, shown(cloud, server)


def shown(cloud: DrainsCloud, server: Any) -> dict[str, Any]:
    seen: dict[str, Any] = cloud.show(server).to_dict()
    return seen | {"updated_at": None}


def check(cloud: DrainsCloud, server: Any, before: dict[str, Any], cell: str) -> None:
    """It is what it was, in that cell only, and comes back there."""
    cloud.settle()
    assert cell_of(cloud, server) == cell
    assert shown(cloud, server) == before
    assert cloud.audit().disagreements == []
    cloud.end_drains()
    act(cloud, server, "unshelve")
    cloud.wait(server, "ACTIVE")
    assert cloud.host_of(server).startswith(cell)
    assert [each["status"] for each in cloud.attachments(server)] == ["attached"]


@pytest.mark.parametrize("point", [*STEPS, *ASKING])
def test_moved_records_arrive_whole_though_a_conductor_dies(
    cloud: DrainsCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, before = with_records(cloud)
    drain, _plan = planned(cloud)
    dies_at(point)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert cloud.actions(server).count("migrate") == 1
    assert cloud.row(drain, server)["attempts"] == 0
    check(cloud, server, before, "cell2")


@pytest.mark.parametrize("point", UNDOING)
def test_the_undo_of_moved_records_survives_the_death_of_a_conductor(
    cloud: DrainsCloud, dies_at: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    server, before = with_records(cloud)
    works = copies.write

    def write(*args: Any, **more: Any) -> None:
        works(*args, **more)
        raise errors.OperationFailed("The copy was refused.")

    monkeypatch.setattr(copies, "write", write)
    drain, _plan = planned(cloud, retries=0)
    dies_at(point)
    cloud.act(drain, "start")
    row = cloud.becomes_row(drain, server, "failed")
    assert row["why"] == "The copy was refused."
    monkeypatch.undo()
    cloud.settle()
    # A fault is shown of servers in ERROR only.
    assert cloud.action(server, "migrate").message == "The copy was refused."
    check(cloud, server, before, "cell1")


def test_a_cell_that_does_not_answer_is_waited_for(cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server, before = with_records(cloud)
    works, failures = copies.write, [None] * 2

    def write(*args: Any, **more: Any) -> None:
        if failures:
            failures.pop()
            raise errors.DatabaseFailed("The database of cell2 does not answer.")
        works(*args, **more)

    monkeypatch.setattr(copies, "write", write)
    drain, _plan = planned(cloud)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert cloud.row(drain, server)["attempts"] == 0
    check(cloud, server, before, "cell2")


@pytest.mark.parametrize("ends", ["done", "undone"])
def test_one_that_was_slow_leaves_nothing(cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    """It stood still when it was about to write the copy."""
    server, before = with_records(cloud)
    reached, opened, works = threading.Event(), threading.Event(), copies.write

    def write(*args: Any, **more: Any) -> None:
        if not reached.is_set():
            reached.set()
            assert opened.wait(30)
        works(*args, **more)

    with another_conductor(cloud) as other:
        monkeypatch.setattr(copies, "write", write)
        drain, _plan = planned(cloud, retries=0)
        cloud.act(drain, "start")
        assert reached.wait(30)
        api, own = cloud.parts.api_database, cloud.parts.conductor
        move = journal.of_server(api, server.id)[-1]
        if ends == "undone":
            assert wanted_operations.request_cancel(api, move.id)
        take_over(cloud, other, move.id)
        cloud.becomes_row(drain, server, "done" if ends == "done" else "failed")
        # Who has lost a lease in earnest is not certain of it any more.
        own._services.stopping.wait(2)
        opened.set()
        until(lambda: own._keeper.is_busy or other._keeper.is_busy, lambda busy: not busy, "the slow one to end")
    check(cloud, server, before, "cell2" if ends == "done" else "cell1")
