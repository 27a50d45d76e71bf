"""How fast a host may send disks."""

from __future__ import annotations

import threading
import time

import pytest

from causeway.clock import Clock
from causeway.compute.host.bandwidth import Bandwidth


class Pauses(threading.Event):
    """Notes for how long it is waited, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seen.append(timeout or 0.0)
        return False


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return clock


def test_whoever_sends_waits_for_what_all_have_sent(now: list[float]) -> None:
    pauses = Pauses()
    limit = Bandwidth(100.0, pauses, Clock())
    for size in (50, 100, 25):
        limit.take(size)
    assert pauses.seen == [0.5, 1.5, 1.75]
    # What was not used is not kept.
    now[0] += 60.0
    limit.take(100)
    assert pauses.seen[-1] == 1.0


def test_without_a_limit_nobody_waits() -> None:
    pauses = Pauses()
    Bandwidth(0.0, pauses, Clock()).take(1 << 30)
    assert pauses.seen == []


def test_a_limit_that_comes_later_counts_for_what_was_taken_before(now: list[float]) -> None:
    pauses = Pauses()
    share = Bandwidth(0.0, pauses, Clock(), 10.0)
    began = now[0]
    share.take(500)
    now[0] += 2.0
    share.become(100.0, began, 500)
    share.take(100)
    assert pauses.seen == [4.0]
    # Another one counts from then on; nobody waits for longer than what was said, and what is due stays due.
    share.become(1.0, began, 600)
    share.take(50)
    share.take(0)
    assert pauses.seen == [4.0, 10.0, 10.0]
    share.become(0.0, began, 650)
    share.take(1 << 30)
    assert len(pauses.seen) == 3
