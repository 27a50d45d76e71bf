"""The functional suite by URL, on processes with devcloud around: a sample of it. All of it runs beside the real services."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.functional.processes.rabbit import rabbit, why_not
from tests.functional.processes.suite_cloud import SUITE_OPTIONS, SuiteDeployment, run_suite

pytestmark = [pytest.mark.timeout(400), pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

# What is seen, what fails in devcloud and in our own parts, and what can only be done inside a process.
SAMPLE = (
    "tests/functional/servers/cross_cell/test_cross_cell_resize.py",
    "tests/functional/servers/failures/test_failed_moves.py::test_a_stopped_server_is_restored_stopped",
    "tests/functional/servers/cross_cell/test_pivot.py",
)


def test_a_sample_of_the_suite_passes_by_url(tmp_path: Path) -> None:
    with rabbit(tmp_path / "rabbit") as queue:
        # Some of the sample want what fails to be rolled back at once.
        moves = SUITE_OPTIONS["moves"] | {"patience": 0.0, "patience_while_off": 0.0, "whole_tries": 1}
        cloud = SuiteDeployment(tmp_path, queue, options=SUITE_OPTIONS | {"moves": moves})
        try:
            cloud.start()
            outcome = run_suite(tmp_path / "cloud.yaml", *SAMPLE, seconds=300)
        finally:
            cloud.stop()
    assert outcome.failed == {}, outcome
    assert outcome.passed == 10, outcome
    assert list(outcome.skipped) == ["by URL: changes or watches code of the cloud (monkeypatch)"], outcome
