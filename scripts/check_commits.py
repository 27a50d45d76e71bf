#!/usr/bin/env python3
"""Finds commits whose subject is longer than CONTRIBUTING.md allows. Prints one line per commit; exits with 1 if there are any.

scripts/check_commits.py           the commits of this branch since the rule has been checked
scripts/check_commits.py MESSAGE   the message in this file: git calls a hook ``commit-msg`` so
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 72
# Subjects of older commits stay as they are: others have them in their clones.
SINCE = "2026-11-27T19:20:00Z"


def too_long(subjects: list[str]) -> list[str]:
    """Returns what is wrong with each of ``subjects`` that is too long."""
    return [
        f"{subject!r}: {len(subject)} characters, at most {LONGEST}" for subject in subjects if len(subject) > LONGEST
    ]


def subjects_since(root: Path, since: str) -> list[str]:
    """Returns the subjects of the commits since then; none if ``root`` is no repository (a source distribution).

    Merges are left out: git words their subjects. Raises CalledProcessError if git fails.
    """
    if not (root / ".git").exists():
        return []
    # CI may check out as another user than the one that runs this.
    git = ["git", "-c", f"safe.directory={root}", "-C", str(root)]
    log = [*git, "log", "--no-merges", f"--since={since}", "--format=%s"]
    return subprocess.run(log, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout.splitlines()


def main(arguments: list[str]) -> int:
    subjects = [Path(arguments[0]).read_text().partition("\n")[0]] if arguments else subjects_since(ROOT, SINCE)
    wrong = too_long(subjects)
    for line in wrong:
        print(line)
    if wrong:
        print("Shorten the subject, and say the rest in the body: CONTRIBUTING.md, Commits")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
