"""Continuous integration (.ci/run) runs all of its checks, and fails if one of them does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.scripts.loaded import FOLDER

CHECKS = {
    "lint": "lint",
    "docs": "docs",
    "tests": "test",
    "further tests": "test-rest",
    "coverage": "coverage",
    "audit": "audit",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose checks do nothing but exit with a status: 0, or what a file in ``statuses`` says."""
    for name in (".ci", "scripts", "docs", "bin", "statuses", ".venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy2(FOLDER.parent / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    (tmp_path / "scripts/audit_dependencies.py").write_text(
        "import sys; from pathlib import Path; file = Path('statuses/audit'); "
        "sys.exit(int(file.read_text()) if file.exists() else 0)"
    )
    (tmp_path / "scripts/flakes.py").write_text("print('| a row |')")
    programs = {
        "bin/make": 'exit "$(cat "statuses/$1" 2>/dev/null || echo 0)"',
        "scripts/install-packages.sh": "exit 0",
        "scripts/install-tool.sh": "exit 0",
    }
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(project: Path) -> tuple[int, list[str]]:
    environment = os.environ | {"PATH": f"{project / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        [project / ".ci/run"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout.splitlines()


def test_integration_passes_if_all_pass_and_shows_the_tests_that_were_run_again(project: Path) -> None:
    status, said = run(project)
    assert status == 0
    assert said[-len(CHECKS) :] == [f"{name}: passed" for name in CHECKS]
    assert "| a row |" in said


@pytest.mark.parametrize(("name", "target"), CHECKS.items())
def test_one_that_fails_fails_it_and_the_others_are_run(project: Path, name: str, target: str) -> None:
    (project / "statuses" / target).write_text("1")
    status, said = run(project)
    assert status == 1
    assert said[-len(CHECKS) :] == [f"{one}: {'FAILED (1)' if one == name else 'passed'}" for one in CHECKS]


def test_an_audit_whose_database_is_out_of_reach_is_said_and_fails_nothing(project: Path) -> None:
    (project / "statuses/audit").write_text("3")
    status, said = run(project)
    assert (status, said[-1]) == (0, "audit: NOT RUN, because its database can't be reached from here")


def test_what_can_t_be_installed_ends_it(project: Path) -> None:
    (project / "statuses/install").write_text("2")
    assert run(project) == (1, [])
