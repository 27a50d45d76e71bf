"""The trace of requests (scripts/trace_requests.py): which calls it records, and which of them climb."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.scripts.loaded import load

ROOT = Path(__file__).resolve().parents[3]
LOW = """
class Box:
    def open(self):
        return 1

def up(there):
    return [there() for _time in range(3)]

def up_by_a_library(library, there):
    return library(there)
"""
HIGH = """
def down():
    return low["Box"]().open()

def climb():
    return low["up"](down)

def climb_by_a_library(library):
    return low["up_by_a_library"](library, down)
"""


@pytest.fixture(scope="module")
def tracer() -> ModuleType:
    return load("trace_requests")


@pytest.fixture
def high(tmp_path: Path) -> dict[str, Any]:
    """A program of two packages."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {"low": low}
    for names, path, source in ((low, "low/things.py", LOW), (high, "high/users.py", HIGH)):
        exec(compile(source, tmp_path / path, "exec"), names)
    return high


def traced(recorder: Any, work: Callable[[], object]) -> Any:
    """What is recorded of it, on a thread of its own."""
    with recorder:
        trace = recorder.begin()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(60)
        recorder.end()
    return trace


def climbs(trace: Any) -> dict[tuple[str, str], int]:
    return {(caller.name, called.name): count for (caller, called), count in trace.climbs.items()}


def test_floors_are_those_that_imports_are_checked_by(tracer: ModuleType) -> None:
    floors = tracer.read_floors(ROOT / "pyproject.toml")

    assert floors["cli"] == max(floors.values())
    assert floors["model"] == floors["errors"] == 0
    assert (
        floors["sagas"] < floors["store"] < floors["moves"] < floors["operations"] < floors["conductor"] < floors["api"]
    )
    assert not [name for name in floors if not list((ROOT / "src/causeway").glob(f"{name}*"))]


def test_a_call_upward_is_a_climb_and_one_downward_is_none(
    tracer: ModuleType, tmp_path: Path, high: dict[str, Any]
) -> None:
    trace = traced(tracer.Recorder({"low": 0, "high": 1}, tmp_path), high["climb"])

    assert climbs(trace) == {("up", "down"): 3}
    assert trace.summary() == {"files": 2, "functions": 4, "climbs": 1, "climbs in all": 3}
    assert {str(each) for each in trace.functions} == {
        "high/users.py:2 down",
        "high/users.py:5 climb",
        "low/things.py:3 Box.open",
        "low/things.py:6 up",
    }


@pytest.mark.parametrize("floors", [{"low": 1, "high": 0}, {"low": 0, "high": 0}, {"high": 1}])
def test_without_a_higher_floor_there_is_no_such_climb(
    floors: dict[str, int], tracer: ModuleType, tmp_path: Path, high: dict[str, Any]
) -> None:
    assert ("up", "down") not in climbs(traced(tracer.Recorder(floors, tmp_path), high["climb"]))


def test_a_call_by_a_library_is_counted_and_is_no_climb(
    tracer: ModuleType, tmp_path: Path, high: dict[str, Any]
) -> None:
    def library(there: Callable[[], object]) -> object:
        return there()

    trace = traced(tracer.Recorder({"low": 0, "high": 1}, tmp_path), lambda: high["climb_by_a_library"](library))

    assert not trace.climbs
    assert "down" in {each.name for each in trace.functions}


def test_what_is_periodic_is_not_recorded(tracer: ModuleType, tmp_path: Path, high: dict[str, Any]) -> None:
    recorder = tracer.Recorder({"low": 0, "high": 1}, tmp_path)
    recorder.periodic = frozenset(traced(recorder, high["down"]).functions)

    trace = traced(recorder, high["climb"])

    assert {each.name for each in trace.functions} == {"climb", "up"}
    assert not trace.climbs


def test_the_thread_that_looks_on_is_not_recorded(tracer: ModuleType, tmp_path: Path, high: dict[str, Any]) -> None:
    with tracer.Recorder({"low": 0, "high": 1}, tmp_path) as recorder:
        trace = recorder.begin()
        high["climb"]()

    assert not trace.functions
