"""The functional suite by URL, on processes with devcloud around: a sample of it. All of it runs beside the real services."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.functional.processes.rabbit import rabbit, why_not
from tests.functional.processes.suite_runs import on_devcloud, run_suite
from tests.functional.processes.suite_shapes import SHAPES
from tests.of_one_process import INSIDE

pytestmark = [pytest.mark.timeout(400), pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

# What is seen, what fails in devcloud and in our own parts, and what can only be done inside a process.
SAMPLE = (
    "tests/functional/servers/cross_cell/test_cross_cell_resize.py",
    "tests/functional/servers/failures/test_failed_moves.py::test_a_stopped_server_is_restored_stopped",
    "tests/functional/servers/cross_cell/test_pivot.py",
)


def test_a_sample_of_the_suite_passes_by_url(tmp_path: Path) -> None:
    # Some of the sample want what fails to be rolled back at once.
    (shape,) = (each for each in SHAPES if each.name == "at once")
    with rabbit(tmp_path / "rabbit") as queue, on_devcloud(tmp_path, queue, shape) as cloud:
        outcome = run_suite(cloud, *SAMPLE, seconds=300)
    assert outcome.failed == {}, outcome
    assert outcome.skipped == {}, outcome
    assert len(outcome.passed) == 10, outcome
    assert outcome.of_one_process == {INSIDE["monkeypatch"]: 2}, outcome
