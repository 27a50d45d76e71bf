"""Regular expressions of users take no time, and databases only see what takes none of theirs either."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.store.patterns import InvalidPattern, compile_pattern, is_plain

# A name for which an engine that backtracks needs 2**33 steps and more.
LONG_NAME = "a" * 33 + "b"


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "(a*)*c", "^(([a-z])+.)+[A-Z]$", "(x+x+)+y"])
def test_what_makes_others_backtrack_takes_no_time(pattern: str) -> None:
    assert compile_pattern(pattern).search(LONG_NAME) is None
    assert compile_pattern(pattern).match("x" * 250) is None
    assert not is_plain(pattern)


@pytest.mark.parametrize("pattern", ["web", "^web-1$", "web.*1", r"10\.0\.0\.", "a|b", "^[abc]+x", "ü", "", "a$b"])
def test_patterns_that_databases_understand_are_plain(pattern: str) -> None:
    assert is_plain(pattern)


@pytest.mark.parametrize(
    "pattern", ["(a)", "[a-c]", "a*b*", "a{3}", r"\d", "(?i)a", "[[:alpha:]]", r"\1", "a**", "^*", r"[\]]", "a" * 256]
)
def test_patterns_that_databases_do_not_get_are_not_plain(pattern: str) -> None:
    assert not is_plain(pattern)


@given(st.text(alphabet=r"ab.^$*+?()[]|\-{}1", max_size=12))
def test_plain_patterns_say_the_same_to_every_engine(pattern: str) -> None:
    if not is_plain(pattern):
        return
    for text in ("", "a", "ab", "aab", "b.a", "a-b"):
        try:
            expected = re.search(pattern, text) is not None
        except re.error:
            with pytest.raises(InvalidPattern):
                compile_pattern(pattern)
            return
        assert (compile_pattern(pattern).search(text) is not None) == expected


@pytest.mark.parametrize(
    "pattern", ["(", "[", "*a", r"(a)\1", "(?=a)b", "(?<!a)b", "a" * 4097, "((a{100}){100}){100}", "\ud800"]
)
def test_patterns_that_are_not_supported_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        compile_pattern(pattern)


def test_a_refused_pattern_says_what_is_not_supported() -> None:
    with pytest.raises(InvalidPattern, match="look-around"):
        compile_pattern("(?=a)")
