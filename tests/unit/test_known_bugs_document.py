"""docs/known-bugs.md: every row of it has an answer, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
REASON = re.compile(r"(Cannot happen|Does not apply|\*\*Open\*\*): \S+")


def rows() -> list[list[str]]:
    lines = (ROOT / "docs/known-bugs.md").read_text().splitlines()
    tables = [line for line in lines if line.startswith("| ") and not line.startswith(("| bug |", "| rule |"))]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in tables]


@cache
def names_in(path: str) -> frozenset[str]:
    """Tests of a module: functions, classes (also those that are assigned), and methods as CLASS::METHOD."""
    found: set[str] = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.ClassDef):
            found.add(node.name)
            found |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return frozenset(found)


def test_every_test_that_the_document_names_exists() -> None:
    named = TEST.findall((ROOT / "docs/known-bugs.md").read_text())
    assert len(named) > 100
    missing = [f"{path}::{name}" for path, name in named if not (ROOT / path).exists() or name not in names_in(path)]
    assert missing == []
    assert [name for _path, name in named if not name.rpartition("::")[2].lower().startswith("test")] == []


def test_no_row_is_without_an_answer() -> None:
    found = rows()
    assert len(found) == 189
    assert [row for row in found if len(row) != 3 or not all(row)] == []
    assert [row for row in found if not TEST.search(row[2]) and not REASON.match(row[2])] == []


def test_the_tests_of_known_bugs_are_all_in_the_document() -> None:
    text = (ROOT / "docs/known-bugs.md").read_text()
    there = (ROOT / "tests/functional/known_bugs").glob("test_*.py")
    named = [
        f"{path.relative_to(ROOT)}::{name}"
        for path in there
        for name in names_in(str(path.relative_to(ROOT)))
        if name.startswith("test_")
    ]
    assert len(named) > 30
    assert [name for name in named if name not in text] == []
