"""The functional suite, unchanged: that of moves by URL, beside the real services; that of the API on both kinds of databases."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.functional.processes.suite_runs import MOST_SKIPPED, run_shapes, run_tests
from tests.functional.processes.suite_shapes import SHAPES
from tests.integration.real_services import suite_beside
from tests.integration.real_services.conftest import why_not_here

# Seconds for the whole of it; about two for each test on a quiet machine, ten on a busy one.
PATIENCE = 7200

pytestmark = pytest.mark.timeout(PATIENCE * 2)

KINDS = pytest.mark.parametrize("kind", ["mariadb", "postgresql"])


@KINDS
def test_the_suite_of_the_api_passes_on_database_servers(kind: str, tmp_path: Path) -> None:
    """The API is in the process of the tests, which look at what it asks of others; what differs is what SQL means."""
    outcome = run_tests(tmp_path, "--databases", kind, "tests/functional/api", seconds=PATIENCE)
    suite_beside.outcomes[f"API, {kind}"] = outcome
    assert outcome.failed == {}, f"{outcome}\n{outcome.output[-20000:]}"


@KINDS
def test_the_functional_suite_passes_by_url(kind: str) -> None:
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="causeway-suite-", ignore_cleanup_errors=True) as folder:
        directory = Path(folder)
        outcome = run_shapes(
            lambda shape: suite_beside.suite_cloud(directory / shape.name.replace(" ", "-"), kind, shape), shapes=SHAPES
        )
        suite_beside.outcomes[f"moves by URL, {kind}"] = outcome
        if outcome.failed:
            kept = shutil.copytree(directory, tempfile.mkdtemp(prefix="causeway-suite-failed-"), dirs_exist_ok=True)
            pytest.fail(f"{outcome}\nEverything that was said is kept in {kept}")
    # What has devcloud fail, or is made in it, can't be done here, however much that is.
    left = [test for test, reason in outcome.skipped.items() if "devcloud" not in reason]
    assert len(left) <= MOST_SKIPPED * (outcome.passed + len(left)), outcome
