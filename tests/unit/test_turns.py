"""Turns: one holder of a name at a time, and nothing is kept of names that nobody holds."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from causeway.turns import Turns


def test_one_at_a_time_has_the_turn_of_a_name() -> None:
    turns = Turns()

    def enter() -> None:
        with turns.of("a"):
            pass

    with ThreadPoolExecutor(1) as pool:
        with turns.of("a"):
            waits = pool.submit(enter)
            with pytest.raises(TimeoutError):
                waits.result(timeout=0.2)
        waits.result(timeout=30)


def test_who_waits_gets_the_turn_afterwards() -> None:
    turns, order, begun = Turns(), [], threading.Event()

    def second() -> None:
        begun.set()
        with turns.of("a"):
            order.append("second")

    with ThreadPoolExecutor(1) as pool, turns.of("a"):
        waits = pool.submit(second)
        begun.wait(30)
        with turns.of("b"), turns.of("a"):
            order.append("first")
    waits.result(timeout=30)
    assert order == ["first", "second"]


def test_no_name_is_kept_after_its_turn() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="broken"), turns.of("a"):
        assert len(turns) == 1
        raise ValueError("broken")
    assert len(turns) == 0
