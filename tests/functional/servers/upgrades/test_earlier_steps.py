"""Moves that an earlier release began have their steps as rows of a table, and continue with them."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from causeway.audit import audit_embedded
from causeway.compute.host import transfer_progress
from causeway.model.sagas import SagaState, StepPhase, StepState
from causeway.moves.recipes import RESIZE
from causeway.store.api import journal
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.operations.test_watched_operations import operations

pytestmark = pytest.mark.embedded("writes to the journal as an earlier release does")


@pytest.fixture
def server(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is asked for after its boot is written as by an earlier release's API."""
    server, insert = cloud.boot(), journal.insert_in

    def as_rows(connection: sa.Connection, operation: Any, *args: Any, **more: Any) -> None:
        operation.steps = None
        insert(connection, operation, *args, **more)

    monkeypatch.setattr(journal, "insert_in", as_rows)
    monkeypatch.setattr(transfer_progress, "REPORT_INTERVAL", 0.0)
    return server


def rows(cloud: Cloud, move_id: str) -> int:
    query = sa.select(sa.func.count()).select_from(journal.STEPS).where(journal.STEPS.c.move_id == move_id)
    with cloud.parts.api_database.read() as connection:
        return int(connection.execute(query).scalar_one())


def test_a_move_with_rows_of_steps_succeeds(cloud: Cloud, server: Any) -> None:
    cloud.resized(server)
    (move,) = cloud.moves(server)
    steps = journal.steps(cloud.parts.api_database, move.id)
    names = [RESIZE.steps[0].name, *(step.name for step in RESIZE.steps)]
    assert [step.step for step in steps] == list(dict.fromkeys(names)) and {step.state for step in steps} == {
        StepState.DONE
    }
    assert move.steps is None and rows(cloud, move.id) == len(steps)
    (shown,) = operations(cloud, server, everything=True)
    assert [(step["step"], step["bytes_done"]) for step in shown["steps"]] == [
        (step.step, step.bytes_done) for step in steps
    ]
    assert any(step.bytes_done for step in steps)
    cloud.confirmed(server)
    cloud.settle()
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_a_move_with_rows_of_steps_is_rolled_back(cloud: Cloud, server: Any) -> None:
    cloud.without_rounds()
    cloud.fail("status", "/file$", service="image", method="PUT", status=413)
    cloud.option("direct", "never", "moves")
    cloud.member.compute.resize_server(server.id, "gen2.small")
    assert cloud.failed(server).status == "ACTIVE"
    cloud.settle()
    (move,) = cloud.moves(server)
    steps = journal.steps(cloud.parts.api_database, move.id)
    assert move.state is SagaState.FAILED and steps[-1].phase is StepPhase.UNDO
    assert move.steps is None and rows(cloud, move.id) == len(steps)
