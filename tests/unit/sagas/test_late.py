"""What came too late is undone when its saga has ended, and nobody else uses what it would touch."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from causeway import errors
from causeway.model.sagas import SagaState
from causeway.sagas.late import PATIENCE, Late

LEASE = 30.0


@dataclass
class Elsewhere:
    """What another process has done with the saga, and what the undo meets."""

    state: SagaState = SagaState.RUNNING
    now: float = 0.0
    failures: list[errors.CausewayError] = field(default_factory=list)
    undone: list[int] = field(default_factory=list)

    def undo(self, run: Any) -> None:
        if self.failures:
            raise self.failures.pop()
        self.undone.append(run.saga.epoch)


@pytest.fixture
def elsewhere() -> Elsewhere:
    return Elsewhere()


@pytest.fixture
def late(elsewhere: Elsewhere) -> Late:
    journal = SimpleNamespace(
        get=lambda _saga_id: SimpleNamespace(epoch=2), states=lambda ids: dict.fromkeys(ids, elsewhere.state)
    )
    environment: Any = SimpleNamespace(
        journal=journal, clock=SimpleNamespace(boot=lambda: elsewhere.now), options=SimpleNamespace(lease=LEASE)
    )
    lost = Late(environment)
    run: Any = SimpleNamespace(saga=SimpleNamespace(id="saga", epoch=1, pivoted=False), is_over=False)
    lost.add(run, elsewhere.undo)
    return lost


def at_once(work: Callable[[], None]) -> None:
    work()


def test_what_came_too_late_is_undone_once_when_the_saga_has_ended(late: Late, elsewhere: Elsewhere) -> None:
    late.look(at_once)
    assert elsewhere.undone == [] and late.is_waiting
    elsewhere.state = SagaState.DONE
    late.look(at_once)
    late.look(at_once)
    # With the epoch of the last owner: hosts refuse older ones.
    assert elsewhere.undone == [2] and not late.is_waiting


def test_an_undo_that_takes_long_is_not_begun_again(late: Late, elsewhere: Elsewhere) -> None:
    elsewhere.state = SagaState.DONE
    begun: list[Callable[[], None]] = []
    late.look(begun.append)
    late.look(begun.append)
    assert len(begun) == 1 and late.is_waiting
    begun[0]()
    assert elsewhere.undone == [2] and not late.is_waiting


def test_the_undo_of_what_came_too_late_waits_for_another_operation(late: Late, elsewhere: Elsewhere) -> None:
    elsewhere.state = SagaState.DONE
    elsewhere.failures = [errors.OperationUnderWay("Another one works on the server.")]
    late.look(at_once)
    assert elsewhere.undone == [] and late.is_waiting
    late.look(at_once)
    assert elsewhere.undone == [2] and not late.is_waiting


def test_the_undo_of_what_came_too_late_does_not_wait_for_ever(
    late: Late, elsewhere: Elsewhere, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere.state, elsewhere.now = SagaState.DONE, PATIENCE * LEASE
    elsewhere.failures = [errors.OperationUnderWay("Another one works on the server.")]
    with caplog.at_level(logging.WARNING):
        late.look(at_once)
    assert elsewhere.undone == [] and not late.is_waiting
    assert "run an audit: Another one works on the server." in caplog.text


def test_a_saga_that_does_not_end_is_left_to_an_audit(
    late: Late, elsewhere: Elsewhere, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere.now = PATIENCE * LEASE
    with caplog.at_level(logging.WARNING):
        late.look(at_once)
    assert not late.is_waiting and "run an audit" in caplog.text
