"""The check of commits (scripts/check_commits.py) finds subjects that are too long, among those that it looks at.

That the commits of this repository have none is what `make lint` checks.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.scripts.loaded import load

LONG = "x" * 73


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    return load("check_commits")


def git(folder: Path, *arguments: str, date: str = "2026-11-28T12:00:00Z") -> None:
    who = {
        f"GIT_{role}_{what}": "somebody@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment = {**os.environ, **who, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, env=environment, timeout=60)


def test_of_the_commits_since_then_those_with_a_long_subject_are_found(checker: ModuleType, tmp_path: Path) -> None:
    git(tmp_path, "init", "-b", "main")
    git(tmp_path, "commit", "--allow-empty", "-m", f"old {LONG}", date="2026-11-01T12:00:00Z")
    git(tmp_path, "commit", "--allow-empty", "-m", f"new {LONG}")
    git(tmp_path, "commit", "--allow-empty", "-m", "short", "-m", f"The body may have lines of {LONG}.")
    git(tmp_path, "checkout", "-b", "side")
    git(tmp_path, "commit", "--allow-empty", "-m", "side")
    git(tmp_path, "checkout", "main")
    git(tmp_path, "merge", "--no-ff", "-m", f"merge {LONG}", "side")

    subjects = checker.subjects_since(tmp_path, "2026-11-20T00:00:00Z")

    assert sorted(subjects) == [f"new {LONG}", "short", "side"]
    assert checker.too_long(subjects) == [f"'new {LONG}': 77 characters, at most 72"]


def test_a_source_distribution_has_no_commits(checker: ModuleType, tmp_path: Path) -> None:
    assert checker.subjects_since(tmp_path, checker.SINCE) == []


@pytest.mark.parametrize(("subject", "status"), [("x" * 72, 0), (LONG, 1)])
def test_as_a_hook_it_looks_at_the_message_that_is_to_be_committed(
    subject: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], checker: ModuleType
) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text(f"{subject}\n\nA body with {LONG}.\n")

    assert checker.main([str(message)]) == status
    assert ("73 characters" in capsys.readouterr().out) == bool(status)
