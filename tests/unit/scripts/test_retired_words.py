"""The check for retired words (scripts/check_words.py) finds them in names and prose, and nothing that has a reason to stay.

That the source has none is what `make lint` checks.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.scripts.loaded import load

WORDS = r"""
check = ["src"]

[[word]]
retired = "tell"
say = "notify"
pattern = "tell|told"

[[word]]
retired = "give back"
say = "restore"
pattern = "(?:give|gives)(?: \\w+){0,2} back"

[[word]]
retired = "leave"
say = "delete"
pattern = "leave(?! cell)"
in = "names"

[[word]]
retired = "let go"
say = "release"
pattern = "let go"
in = "prose"

[[exception]]
names = ["is_told", "give_back"]
phrases = ["told apart by their colour"]
files = ["src/old/*"]
reason = "on the wire"
"""


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    return load("check_words")


def found(checker: ModuleType, text: str) -> list[tuple[int, str]]:
    _paths, words, exceptions = checker.load(WORDS)
    return [(each.line, each.text) for each in checker.check_python("a.py", text, words, exceptions)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def tell_all(): ...", [(1, "tell_all")]),
        ("class ToldOnce: ...", [(1, "ToldOnce")]),
        ("tellers = storytelling = 1", []),
        ('x = "leave_host"', [(1, "leave_host")]),
        ("x = f'{row.told_name}/a'", []),
        ("# fine\n# it gives the guest\n# back", [(2, "gives the guest back")]),
        ('"""It is told.\n\nTold twice."""', [(1, "told"), (3, "Told")]),
        ("let_go = 1  # let go", [(1, "let go")]),
        ("leave = 1  # leave it", [(1, "leave")]),
        ("leave_cell = 1", []),
    ],
)
def test_words_are_found_in_names_comments_and_strings(
    checker: ModuleType, text: str, expected: list[tuple[int, str]]
) -> None:
    assert found(checker, text) == expected


def test_exceptions_hold_for_exactly_what_they_name(checker: ModuleType) -> None:
    assert found(checker, "is_told = give_back = 1  # told apart by\n# their colour") == []
    assert found(checker, "was_told = 1  # told apart by hand") == [(1, "was_told"), (1, "told")]


def test_an_exception_without_a_reason_is_refused(checker: ModuleType) -> None:
    with pytest.raises(ValueError, match="without a reason"):
        checker.load(WORDS.replace('reason = "on the wire"', ""))


def test_code_in_markdown_is_skipped(checker: ModuleType) -> None:
    _paths, words, exceptions = checker.load(WORDS)
    text = "# Page\n\n`tell`, [a link](tell.md)\n\n```\ntell\n```\n\nIt gives\nit back.\n"
    findings = list(checker.check_markdown("a.md", text, words, exceptions))
    assert [(each.line, each.text) for each in findings] == [(9, "gives it back")]


def test_folders_are_searched_and_excepted_files_are_not(checker: ModuleType, tmp_path: Path) -> None:
    for name in ("src/new/a.py", "src/old/a.py", "src/new/b.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("told\n")
    paths, words, exceptions = checker.load(WORDS)
    assert [each.path for each in checker.check(tmp_path, paths, words, exceptions)] == ["src/new/a.py", "src/new/b.md"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# refused as in the\n# field, with the field's message", 2),
        ("def test_events_have_the_fields_names(): ...", 1),
        ("def test_nothing_is_as_in_the_field(): ...", 1),
        ('"""The field ``name`` is the field "name" of a body; the fields of a row."""', 0),
    ],
)
def test_a_field_is_that_of_a_class_and_not_what_others_do(checker: ModuleType, text: str, expected: int) -> None:
    _paths, words, exceptions = checker.load(checker.WORDS.read_text())
    assert len(list(checker.check_python("a.py", text, words, exceptions))) == expected
