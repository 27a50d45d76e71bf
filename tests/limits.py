"""How long a test may take before it is taken for one that hangs. On a busy machine all of them take twenty times as long.

Most tests wait for little, and have the limit of pyproject.toml; others say theirs. Both are for a machine of usual speed.
A property has as many examples as it asks for, so its limit follows from their number: three hundred of them are three hundred
times the work of one.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import is_hypothesis_test, settings

# Seconds for an example; on a quiet machine the slowest take a tenth of a second.
EACH = 5.0
# How many times slower than usual a machine may be. A limit costs nothing where nothing hangs.
SLOWEST = 4


def limit_of(item: pytest.Item) -> float:
    """Seconds, of a test that was given its limit."""
    marker = item.get_closest_marker("timeout")
    assert marker is not None, f"{item.nodeid} has no limit"
    return float(marker.args[0])


def examples_of(item: pytest.Item) -> int:
    """How many examples a property asks for; 0: it is none."""
    test = getattr(item, "obj", None)
    if test is None or not is_hypothesis_test(test):
        return 0
    asked: settings | None = getattr(test, "_hypothesis_internal_use_settings", None) or settings.default
    return asked.max_examples if asked is not None else 0


def give(items: Iterable[pytest.Item]) -> None:
    """Gives each test its limit."""
    for item in items:
        limit = max(SLOWEST * _said(item), EACH * examples_of(item))
        item.add_marker(pytest.mark.timeout(limit), append=False)


def _said(item: pytest.Item) -> float:
    """Seconds on a machine of usual speed: what the test says, or the command line, or pyproject.toml."""
    marker = item.get_closest_marker("timeout")
    if marker is not None and marker.args:
        return float(marker.args[0])
    return float(item.config.getoption("timeout") or item.config.getini("timeout"))
