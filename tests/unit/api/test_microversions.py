"""The list of microversions: complete, to the newest one, and all that the code compares with stands in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from causeway.api import routes
from causeway.api.microversions import CHANGES
from causeway.api.versions import MAX, MIN

API = Path(__file__).parents[3] / "src/causeway/api"
COMPARED = re.compile(r"\.version (?:[<>]=?|==) \(2, (\d+)\)|\bminor (?:[<>]=?) (\d+)")


def test_the_list_of_microversions_has_no_gap_and_ends_with_the_newest() -> None:
    assert MIN.major == MAX.major == 2
    assert list(CHANGES) == list(range(MIN.minor, MAX.minor + 1))


@pytest.mark.parametrize("minor", CHANGES)
def test_each_says_in_a_line_what_changed(minor: int) -> None:
    assert len(CHANGES[minor]) > 5 and "\n" not in CHANGES[minor]
    assert [other for other, text in CHANGES.items() if text == CHANGES[minor]] == [minor]


def test_routes_begin_and_end_with_one_that_is_known() -> None:
    edges = {route.first for route in routes.ROUTES} | {route.last + 1 for route in routes.ROUTES if route.last}
    assert edges <= set(CHANGES)


def test_the_code_compares_with_what_is_known() -> None:
    found = {int(one or two) for file in API.rglob("*.py") for one, two in COMPARED.findall(file.read_text())}
    assert len(found) > 30
    assert found <= set(CHANGES)


@pytest.mark.parametrize(
    ("word", "minor"),
    [("trigger_crash_dump", 17), ("force_complete", 22), ("topology", 78), ("os-hosts", 43)],
)
def test_what_began_or_ended_is_in_its_line(word: str, minor: int) -> None:
    """Of routes that have a name of their own, the table and the list agree."""
    found = [route for route in routes.ROUTES if word in f"{route.path} {route.action}"]
    assert found
    assert word in CHANGES[minor]
    assert all(minor == route.first or (route.last or 0) + 1 == minor for route in found)
