"""The functional suite, unchanged: that of moves by URL, beside the real services; that of the API on both kinds of databases."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.functional.processes.suite_cloud import run_suite, run_tests
from tests.integration.real_services import suite_beside
from tests.integration.real_services.conftest import why_not_here

# Seconds for the whole of it; about a second and a half for each test on a quiet machine, ten on a busy one.
PATIENCE = 7200

pytestmark = pytest.mark.timeout(PATIENCE + 600)


KINDS = pytest.mark.parametrize("kind", ["mariadb", "postgresql"])
# Tests that need no more than a URL. With fewer some were skipped and nobody noticed.
LEAST = 230


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
        with suite_beside.suite_cloud(directory, kind) as described:
            outcome = suite_beside.outcomes[f"moves by URL, {kind}"] = run_suite(described, seconds=PATIENCE)
        if outcome.failed:
            kept = shutil.copytree(directory, tempfile.mkdtemp(prefix="causeway-suite-failed-"), dirs_exist_ok=True)
            outcome.output += f"\nEverything that was said is kept in {kept}"
    assert outcome.failed == {}, f"{outcome}\n{outcome.output[-20000:]}"
    # Tests that break a cloud from inside are no measure: there are more of them with everything that is hardened.
    assert outcome.passed >= LEAST, outcome
