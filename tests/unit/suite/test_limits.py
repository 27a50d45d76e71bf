"""Tests ask for no quick machine: a property may take as long as its examples need, and nobody waits for a few seconds only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import limits

ROOT = Path(__file__).parents[3]
# What a unit test waits for at least, in seconds, before it fails.
LEAST = 30
# Short waits that do not fail on a slow machine.
SHORT = {
    # Whoever wakes up late has waited longer than that.
    ("tests/unit/rpc/test_rpc_memory.py", "pause.wait(0.5)"),
    ("tests/unit/rpc/test_rpc_memory.py", "stop.wait(0.02)"),
    ("tests/unit/scheduler/test_claims.py", "self.gap.wait(0.002)"),
    # The time of the code that is tested, which is to end then, or of nothing that is waited for.
    ("tests/unit/http/test_direct.py", "session.get(f'{URL}/', timeout=5)"),
    ("tests/unit/rpc/test_rpc_stop.py", "server.stop(timeout=3)"),
    ("tests/unit/rpc/test_rpc_stop.py", "transports.cleanup(timeout=3)"),
    ("tests/unit/virt/test_simulated.py", "source.reboot(existing(), hard=False, timeout=1)"),
    ("tests/unit/virt/test_simulated.py", "source.reboot(existing(LARGE), hard=True, timeout=1)"),
}


@pytest.mark.parametrize("examples", [300, 1])
def test_a_property_may_take_as_long_as_its_examples_need(request: pytest.FixtureRequest, examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.integers())
    def test_holds(number: int) -> None:
        assert number == number

    item = pytest.Function.from_parent(request.node.parent, name="test_holds", callobj=test_holds)
    limits.give([item])
    marker = item.get_closest_marker("timeout")
    assert marker is not None and marker.args == (max(_usual(request), examples * limits.EACH),)


@pytest.mark.timeout(700)
def test_what_a_test_says_is_for_a_machine_of_usual_speed(request: pytest.FixtureRequest) -> None:
    assert limits.limit_of(request.node) == 700 * limits.SLOWEST


@given(st.integers())
def test_this_property_has_the_limit_of_its_examples(number: int) -> None:
    assert isinstance(number, int)


def test_every_test_that_was_collected_has_its_limit(request: pytest.FixtureRequest) -> None:
    named = {one.name: one for one in request.session.items if one.nodeid.startswith("tests/unit/suite/test_limits.py")}
    of_examples = limits.EACH * limits.examples_of(named["test_this_property_has_the_limit_of_its_examples"])
    assert limits.limit_of(named["test_this_property_has_the_limit_of_its_examples"]) == max(
        _usual(request), of_examples
    )
    assert limits.limit_of(request.node) == _usual(request)


def test_no_test_asserts_how_long_something_took() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file, tree in _trees(ROOT / "tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert) and any(map(_is_short_time, ast.walk(node.test)))
    ]
    assert found == []


def test_no_unit_test_waits_for_a_few_seconds_only() -> None:
    found = {
        (str(file.relative_to(ROOT)), ast.unparse(call))
        for file, tree in _trees(ROOT / "tests/unit")
        for call in _waits(tree)
    }
    assert found - SHORT == set()


def _usual(request: pytest.FixtureRequest) -> float:
    """Seconds, for a test that says nothing."""
    said = request.config.getoption("timeout") or request.config.getini("timeout")
    return limits.SLOWEST * float(said)


def _trees(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    for file in sorted(folder.rglob("*.py")):
        yield file, ast.parse(file.read_text())


def _is_short_time(node: ast.AST) -> bool:
    """Whether it says that not more than some time has passed."""
    return (
        isinstance(node, ast.Compare)
        and isinstance(node.ops[-1], ast.Lt | ast.LtE)
        and isinstance(node.left, ast.BinOp)
        and isinstance(node.left.op, ast.Sub)
        and ast.unparse(node.left.left) in ("time.monotonic()", "time.time()", "time.perf_counter()")
    )


def _waits(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls with a short limit, outside of what is expected to raise."""
    expected = {
        id(inside)
        for node in ast.walk(tree)
        if isinstance(node, ast.With) and any("raises(" in ast.unparse(item.context_expr) for item in node.items)
        for inside in ast.walk(node)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or id(node) in expected:
            continue
        seconds = [keyword.value for keyword in node.keywords if keyword.arg == "timeout"]
        if node.func.attr in ("wait", "join", "result"):
            seconds += node.args[:1]
        values = [each.value for each in seconds if isinstance(each, ast.Constant)]
        if any(isinstance(value, int | float) and 0 < value < LEAST for value in values):
            yield node
