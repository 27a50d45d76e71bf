"""No command in the documents is one that can't be typed: each is parsed by the program that it calls, or named with a reason.

Commands that are really run: docs/draining.md and the README's five minutes (tests/functional/*/test_*_as_written.py), and
docs/adopting.md (tests/integration/adopt/test_page_as_written.py).
"""

from __future__ import annotations

import ast

import pytest

from tests.unit.docs.examples import OTHERS, Example, check, examples, python_blocks

EXAMPLES = list(examples())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.where}: {' '.join(example.words)[:60]}")
def test_a_command_can_be_typed(example: Example) -> None:
    check(example)


@pytest.mark.parametrize(("page", "code"), list(python_blocks()), ids=lambda each: each[:40])
def test_python_in_the_documents_is_python(page: str, code: str) -> None:
    ast.parse(code, filename=page)


def test_commands_in_the_documents_are_found() -> None:
    programs = [example.program for example in EXAMPLES]
    assert min(programs.count(name) for name in ("causeway", "openstack", "make")) > 10


def test_no_reason_is_given_for_what_nothing_calls() -> None:
    assert set(OTHERS) <= {example.program for example in EXAMPLES}


@pytest.mark.parametrize(
    "words",
    [
        ("causeway", "up", "--no-such-option"),
        ("causeway", "manage", "cell", "repair"),
        ("openstack", "server", "resize", "--flavour", "gen2.small", "first"),
        ("openstack", "drain", "repair"),
        ("make", "nothing"),
        ("python", "-m", "causeway.nothing"),
        ("cp", "deploy/conf/nothing.conf", "/etc"),
        ("frobnicate",),
    ],
    ids=" ".join,
)
def test_what_can_not_be_typed_is_found(words: tuple[str, ...]) -> None:
    with pytest.raises(Exception, match=r"."):
        check(Example("here", words))
