"""A test's name is the statement that must hold: it can be read in a report, without the file and the name before it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Of what is spoken stands in the file, or in the test before.
_LEANS = re.compile(r"test_(it|its|they|their|them|such|so|nor|neither|and|but|or|then|also|even|not|never)(_|$)")
# A subject, a verb, and what is said of it.
FEWEST_WORDS = 3


def leans(name: str) -> bool:
    """Whether a test's name says nothing alone."""
    return bool(_LEANS.match(name)) or len(name.removeprefix("test_").split("_")) < FEWEST_WORDS


@pytest.mark.parametrize(
    "name", ["test_never", "test_a_move", "test_nor_if_both_fail", "test_it_comes_back", "test_refused"]
)
def test_a_name_that_leans_on_others_is_noticed(name: str) -> None:
    assert leans(name)


def test_every_name_of_a_test_can_be_read_alone() -> None:
    assert [found for found in _tests() if leans(found.rpartition(":")[2])] == []


def _tests() -> Iterator[str]:
    """``FILE:NAME`` of all tests; those in texts of tests are none."""
    for file in sorted((ROOT / "tests").rglob("*.py")):
        module = ast.parse(file.read_text())
        classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
        for body in (module.body, *(each.body for each in classes)):
            for node in body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    yield f"{file.relative_to(ROOT)}:{node.name}"
