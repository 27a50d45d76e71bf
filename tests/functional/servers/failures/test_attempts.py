"""A move that is stuck does not grow: attempts of a step are counted in its row, and those of an event in one event."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from causeway import errors
from causeway.cli.operation import operation as operation_command
from causeway.model.operations import Operation
from causeway.model.sagas import SagaState, StepRecord, StepState
from causeway.rpc.transport import Outgoing, Verdict
from causeway.sagas.run import LONGEST_TRACEBACK
from causeway.store.api import journal
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("its queue fails with errors that are distinguished")
CLOUD = {"overrides": {"moves": {"lease": 1.0, "attempts": 2, "first_pause": 0.01, "stuck_retry_interval": 0.1}}}
METHOD, EVENT = "confirm_snapshot_based_resize_at_source", "compute_confirm_snapshot_based_resize_at_source"


class Trouble:
    """Every call of a method fails until `end`; the first one in another way than the others, with a long traceback."""

    def __init__(self, cloud: Cloud) -> None:
        self.failures = 0
        self._over = False
        cloud.parts.around.transports.on_send = self._on_send

    def end(self) -> None:
        self._over = True

    def _on_send(self, message: Outgoing) -> Verdict:
        if message.method == METHOD and not self._over:
            self.failures += 1
            raise errors.OperationFailed("The first one." if self.failures == 1 else "Another one. " + "x" * 20_000)
        return Verdict.DELIVER


def look(cloud: Cloud, server: Any) -> tuple[Operation, list[StepRecord]]:
    found = journal.of_server(cloud.parts.api_database, server.id)[-1]
    return found, journal.steps(cloud.parts.api_database, found.id)


def size(cloud: Cloud, move: Operation) -> int:
    """Characters that a move has in the journal."""
    with cloud.parts.api_database.read() as connection:
        return sum(
            len(str(row))
            for row in connection.execute(sa.select(journal.OPERATIONS).where(journal.OPERATIONS.c.id == move.id))
        )


@pytest.mark.expects_errors("is stuck in do of ReleaseSource")
def test_a_stuck_move_does_not_grow(cloud: Cloud) -> None:
    server = cloud.resized(cloud.boot())
    trouble = Trouble(cloud)
    cloud.member.compute.confirm_server_resize(server.id)
    until(lambda: trouble.failures, lambda count: count >= 4, "the move to fail a few times")
    stuck, steps = until(lambda: look(cloud, server), lambda seen: seen[0].state is SagaState.STUCK, "it to be stuck")
    before = size(cloud, stuck)
    until(lambda: trouble.failures, lambda count: count >= 10, "the move to fail more often")
    assert size(cloud, stuck) < before + 200
    stuck, steps = look(cloud, server)
    _check, step = steps
    assert step.step == "ReleaseSource" and step.attempt >= 9
    assert step.first_error and step.first_error["message"] == "The first one."
    assert step.error and step.error["message"].startswith("Another one.")
    assert step.started_at and step.tried_at and step.started_at < step.tried_at
    (event,) = step.events or []
    assert (event.event, event.result, event.first_details) == (EVENT, "Error", "The first one.")
    assert event.attempts in (step.attempt, step.attempt - 1)
    assert event.traceback and len(event.traceback) < LONGEST_TRACEBACK + 100
    assert "events" not in stuck.data or stuck.data["events"] == []

    trouble.end()
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    ended, steps = look(cloud, server)
    assert ended.state is SagaState.DONE
    assert [(each.step, each.state) for each in steps] == [
        ("CheckTarget", StepState.DONE),
        ("ReleaseSource", StepState.DONE),
        ("DeleteSourceRecords", StepState.DONE),
        ("FinishConfirm", StepState.DONE),
    ]
    assert steps[1].attempt >= 11 and steps[1].first_error
    assert (EVENT, "Success") in cloud.events(server, "confirmResize")
    assert len(cloud.events(server, "confirmResize")) == 2

    words = ["show", server.id, "--state-dir", str(cloud.parts.state.path)]
    shown = CliRunner().invoke(operation_command, [*words, "--json"])
    (_check_shown, step_shown, *_rest) = json.loads(shown.output)[-1]["steps"]
    assert step_shown["attempt"] == steps[1].attempt
    assert step_shown["first_error"]["message"] == "The first one."
    table = CliRunner().invoke(operation_command, words, env={"COLUMNS": "300"})
    assert "Attempts" in table.output and "At first: The first one." in table.output
