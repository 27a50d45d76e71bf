"""What the engine logs of failures: ERROR is for what an operator has to look at."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from causeway import errors
from tests.unit.sagas.simulation import Plan, Shape, Simulation


@pytest.fixture(autouse=True)
def everything_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "causeway.sagas")


def run(monkeypatch: pytest.MonkeyPatch, at: int, failure: Exception, times: int = 1) -> None:
    """A saga with a pivot in its second step; its step ``at`` fails so many times."""
    simulation = Simulation(Shape((True, True, True), 1), Plan())
    step = simulation.recipe.steps[at]
    works, left = step.do, [failure] * times

    def do(of_saga: Any) -> None:
        if left:
            raise left.pop()
        works(of_saga)

    monkeypatch.setattr(step, "do", do)
    simulation.run()


def test_a_failure_of_ours_is_one_line_with_its_details(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run(monkeypatch, 0, errors.NoValidHost("No host has room.", details="cell1: 3 hosts are full"))
    (line,) = [record for record in caplog.records if "No host has room." in record.getMessage()]
    assert "cell1: 3 hosts are full" in line.getMessage()
    assert (line.levelname, line.exc_info) == ("INFO", None)


def test_an_unexpected_failure_is_an_error_with_its_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run(monkeypatch, 0, RuntimeError("a mistake in the program"))
    (line,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert line.exc_info and isinstance(line.exc_info[1], RuntimeError)


@pytest.mark.parametrize(
    ("failure", "level"),
    [
        (errors.ServiceFailed("It does not answer.", details="connection refused"), "WARNING"),
        (errors.ServiceRefused("It refuses.", details="403"), "ERROR"),
    ],
)
def test_a_stuck_saga_is_an_error_unless_it_only_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failure: errors.CausewayError, level: str
) -> None:
    run(monkeypatch, 2, failure, times=5)
    (line,) = [record for record in caplog.records if "is stuck" in record.getMessage()]
    assert line.levelname == level and failure.details in line.getMessage()
