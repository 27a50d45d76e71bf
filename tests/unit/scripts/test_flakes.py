"""Tests that pass only when they are run again are written down (scripts/flakes.py, scripts/run-tests.sh)."""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.scripts.loaded import FOLDER, load

TODAY = datetime.date(2026, 11, 29)
EMPTY = "# Flakes\n\n| date | test | cause |\n|---|---|---|\n\nAfter the table.\n"


@pytest.fixture(scope="module")
def flakes() -> ModuleType:
    return load("flakes")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "flakes.md"
    path.write_text(EMPTY)
    return path


def test_no_test_is_in_the_ledger_of_this_project_twice_without_a_cause(flakes: ModuleType) -> None:
    assert flakes.unexplained(flakes.read(flakes.LEDGER)) == []


def test_what_is_noted_is_read_again_and_the_text_around_stays(flakes: ModuleType, ledger: Path) -> None:
    assert flakes.note(ledger, ["tests/a.py::test_x[one]", "tests/a.py::test_x[two]"], TODAY) == []
    assert flakes.read(ledger) == [flakes.Flake(TODAY, "tests/a.py::test_x")]
    explained = flakes.Flake(TODAY, "tests/a.py::test_x", "it took a|b for c; repaired in 1234567")
    flakes.write(ledger, [explained])
    assert flakes.read(ledger) == [explained]
    before, after = EMPTY.split("\n\nAfter")
    assert ledger.read_text() == f"{before}\n{explained}\n\nAfter{after}"


def test_a_test_that_is_there_twice_without_a_cause_fails_the_run(flakes: ModuleType, ledger: Path) -> None:
    flakes.note(ledger, ["tests/a.py::test_x"], TODAY)
    (sentence,) = flakes.note(ledger, ["tests/a.py::test_x", "tests/a.py::test_y"], TODAY)
    assert sentence.startswith("tests/a.py::test_x is in docs/flakes.md 2 times without a cause")
    assert flakes.main(["check"], ledger) == 1
    first, *rest = flakes.read(ledger)
    flakes.write(ledger, [flakes.Flake(first.date, first.test, "known"), *rest])
    assert flakes.main(["check"], ledger) == 0


def test_more_than_two_in_one_run_fail_it(flakes: ModuleType, ledger: Path) -> None:
    assert flakes.note(ledger, ["a.py::test_1", "a.py::test_2"], TODAY) == []
    (sentence,) = flakes.note(ledger, ["a.py::test_3", "a.py::test_4", "a.py::test_5"], TODAY)
    assert sentence.startswith("3 tests of one run passed only when they were run again")


@pytest.mark.parametrize(
    "text", ["", "| date | test |\n|---|---|\n", EMPTY.replace("\n\nAfter", "\n| yesterday | `x` | |\n")]
)
def test_a_ledger_that_is_not_understood_is_said(flakes: ModuleType, ledger: Path, text: str) -> None:
    ledger.write_text(text)
    with pytest.raises(ValueError):
        flakes.read(ledger)


FLAKY = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("case", range({cases}))
def test_flaky(case):
    seen = Path(__file__).with_name(f"seen-{{case}}")
    was_there = seen.exists()
    seen.touch()
    assert was_there

def test_other():
    assert {other}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with this one's scripts and interpreter."""
    for name in ("scripts", "docs"):
        (tmp_path / name).mkdir()
    for name in ("run-tests.sh", "flakes.py"):
        shutil.copy2(FOLDER / name, tmp_path / "scripts" / name)
    (tmp_path / "docs/flakes.md").write_text(EMPTY)
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    return tmp_path


@pytest.mark.parametrize(
    ("cases", "other", "status", "noted"),
    [
        (0, "True", 0, 0),
        (1, "True", 0, 1),
        (2, "True", 0, 1),
        # Too many, and one that fails again.
        (3, "True", 1, 1),
        (1, "False", 1, 0),
    ],
)
def test_a_pass_at_the_second_time_is_noted(
    flakes: ModuleType, project: Path, cases: int, other: str, status: int, noted: int
) -> None:
    (project / "test_some.py").write_text(FLAKY.format(cases=cases, other=other))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV"))}
    done = subprocess.run(
        [project / "scripts/run-tests.sh", "-n", "0", "-q", "test_some.py"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert [flake.test for flake in flakes.read(project / "docs/flakes.md")] == ["test_some.py::test_flaky"] * noted
    assert ("passed only when they were run again" in done.stdout) == (cases == 3)
