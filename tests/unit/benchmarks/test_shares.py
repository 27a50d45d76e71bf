"""Whose work it is, and that what asks does not count itself."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import callgrind, shares
from benchmarks.callgrind import Callgrind
from benchmarks.counting import typical
from benchmarks.instructions import Spent
from benchmarks.shares import CLIENT, GARBAGE, PLACEMENT, SERVICES, WHOLE, Shares
from causeway.clients.placement.http import PlacementHttp
from causeway.http.direct import DirectTransport


class Clock:
    """CPU of the process and of its threads, as tests say. What nobody's thread spends is other threads'."""

    def __init__(self) -> None:
        self.process = 0.0
        self.threads: dict[int, float] = {}

    def spend(self, seconds: float) -> None:
        me = threading.get_ident()
        self.process += seconds
        self.threads[me] = self.threads.get(me, 0.0) + seconds

    def process_time(self) -> float:
        return self.process

    def thread_time(self) -> float:
        return self.threads.get(threading.get_ident(), 0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(shares, "time", clock)

    def call(*_args: object) -> None:
        DirectTransport.send(None, None)  # type: ignore[arg-type]
        clock.spend(1)

    # Three seconds in Placement, and two in other services.
    monkeypatch.setattr(PlacementHttp, "call", call)
    monkeypatch.setattr(DirectTransport, "send", lambda *_args: clock.spend(2))
    return clock


@pytest.fixture
def measured(clock: Clock) -> Iterator[Shares]:  # noqa: ARG001 - what is replaced must be there first
    measured = Shares()
    with ExitStack() as stack:
        gc.disable()
        stack.callback(gc.enable)
        measured.install(stack)
        yield measured


def spent(measured: Shares, clock: Clock) -> Spent:
    def ask() -> Spent:
        clock.spend(100)
        return Spent(instructions=7)

    return measured.look(ask)


def in_a_thread(work: Any) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_each_part_has_what_its_calls_spent_and_the_rest_is_ours(measured: Shares, clock: Clock) -> None:
    before = spent(measured, clock)

    def work() -> None:
        clock.spend(4)
        PlacementHttp.call(None)  # type: ignore[arg-type, call-arg]
        DirectTransport.send(None, SimpleNamespace(url="http://127.0.0.1/network/v2.0/ports"))  # type: ignore[arg-type]
        # The network service's report to our API.
        DirectTransport.send(None, SimpleNamespace(url="http://127.0.0.1/compute/v2.1/x"))  # type: ignore[arg-type]

    in_a_thread(work)
    clock.spend(1)
    found = spent(measured, clock) - before
    assert found.instructions == 0
    assert found.parts == {WHOLE: 12, CLIENT: 1, PLACEMENT: 3, SERVICES: 2, GARBAGE: 0}
    assert shares.of(found.parts) == {
        "ours": pytest.approx(0.5), CLIENT: 1 / 12, PLACEMENT: 0.25, SERVICES: 1 / 6, GARBAGE: 0.0,
    }  # fmt: skip
    assert shares.of({WHOLE: 0.0}) == shares.of({}) == {}


def test_collecting_garbage_is_counted_in_whatever_it_happens(measured: Shares, clock: Clock) -> None:
    class Slow:
        def __del__(self) -> None:
            clock.spend(5)

    one = Slow()
    one.itself = one  # type: ignore[attr-defined]
    del one
    before = spent(measured, clock)
    in_a_thread(gc.collect)
    assert (spent(measured, clock) - before).parts[GARBAGE] == 5


def test_the_parts_of_several_runs_are_added() -> None:
    assert typical([Spent(1, 1, {WHOLE: 1.0}), Spent(1, 1, {WHOLE: 2.0})]).parts == {WHOLE: 3.0}


def test_what_asking_callgrind_takes_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``executed``: since the last time that callgrind wrote down what it counted."""
    executed = [900, 30, 5, 30, 5, 30]
    monkeypatch.setenv(callgrind._FILES, str(tmp_path / "counted"))

    def dump(command: list[str], **_options: Any) -> None:
        assert command[:2] == ["callgrind_control", "--dump"]
        lines = "fn=(1) something\n1 1\n" * 100
        (tmp_path / "counted.1").write_text(f"summary: 77\n{lines}totals: {executed.pop(0)}\n")

    monkeypatch.setattr("benchmarks.callgrind.subprocess.run", dump)
    counting = Callgrind()
    assert not executed
    executed += [1000 + 5, 800, 5, 20, 200 + 5, 60]
    assert [counting.total() for _look in range(3)] == [1000, 1000, 1200]
    assert not list(tmp_path.iterdir())
