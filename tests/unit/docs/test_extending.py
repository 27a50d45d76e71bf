"""docs/extending.md names files and names of the code that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDERS = ("src/causeway", ".", "src/causeway/scheduler/filters")
PAGE = (ROOT / "docs/extending.md").read_text()
CODE = "\n".join(file.read_text() for file in sorted((ROOT / "src/causeway").rglob("*.py")))


def test_the_files_are_there() -> None:
    named = re.findall(r"`([\w./*-]+/[\w.*-]*)`", PAGE) + re.findall(r"`(\w+\.py)`", PAGE)
    missing = [name for name in named if not any(list((ROOT / folder).glob(name.rstrip("/"))) for folder in FOLDERS)]
    assert len(named) > 25
    assert missing == []


def test_the_names_are_there() -> None:
    named = re.findall(r"`([A-Za-z_]+(?:\.[a-z_]+)?)(?:\([^`]*\))?`", PAGE)
    missing = [name for name in named if not re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", CODE)]
    assert len(named) > 20
    assert missing == []
