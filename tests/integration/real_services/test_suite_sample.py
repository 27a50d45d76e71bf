"""A sample of the functional suite by URL, beside the real services on MariaDB. All of it: `test_suite_beside`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.functional.processes.suite_runs import run_suite
from tests.functional.processes.suite_shapes import SHAPES
from tests.integration.real_services import suite_beside
from tests.integration.real_services.conftest import why_not_here
from tests.of_one_process import INSIDE

pytestmark = [pytest.mark.timeout(900), pytest.mark.skipif(why_not_here() is not None, reason=str(why_not_here()))]

# What is seen, what fails in our own parts, and what can only be done inside a process.
SAMPLE = (
    "tests/functional/servers/cross_cell/test_cross_cell_resize.py",
    "tests/functional/servers/cross_cell/test_pivot.py",
)


def test_a_sample_of_the_suite_passes_beside_the_real_services() -> None:
    # Some of the sample want what fails to be rolled back at once.
    (shape,) = (each for each in SHAPES if each.name == "at once")
    # A folder of a test's own has a name that is too long for sockets in it.
    with (
        tempfile.TemporaryDirectory(prefix="causeway-suite-", ignore_cleanup_errors=True) as folder,
        suite_beside.suite_cloud(Path(folder) / "cloud", "mariadb", shape) as cloud,
    ):
        outcome = run_suite(cloud, *SAMPLE, seconds=600)
    assert outcome.failed == {}, outcome
    assert outcome.skipped == {}, outcome
    assert len(outcome.passed) == 7, outcome
    assert outcome.of_one_process == {INSIDE["monkeypatch"]: 2}, outcome
