"""Who asks cells: so many at a time for each cell, on threads that all share; one that hangs holds up nobody else."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import pytest

from causeway.store.askers import Askers

SOON = 30.0


def threads() -> int:
    return sum(thread.name.startswith("cells") for thread in threading.enumerate())


def test_a_cell_is_asked_so_many_questions_at_a_time() -> None:
    askers, proceed = Askers(), threading.Event()
    inside, most, lock = 0, 0, threading.Lock()

    def question() -> int:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        assert proceed.wait(SOON)
        with lock:
            inside -= 1
        return 1

    answers = [askers.submit("one", question, 3) for _ in range(20)]
    assert threads() <= 3
    proceed.set()
    assert sum(answer.result(SOON) for answer in answers) == 20
    assert most <= 3
    askers.close(wait=True)


def test_a_cell_that_hangs_holds_up_no_other() -> None:
    askers, proceed = Askers(), threading.Event()
    hanging = [askers.submit("hangs", lambda: proceed.wait(SOON), 2) for _ in range(50)]
    answers = [askers.submit(f"cell{n}", lambda n=n: n, 2) for n in range(100)]  # type: ignore[misc]
    assert [answer.result(SOON) for answer in answers] == list(range(100))
    assert not any(one.done() for one in hanging)
    proceed.set()
    assert all(one.result(SOON) for one in hanging)
    askers.close(wait=True)


def test_threads_are_used_again() -> None:
    askers = Askers()
    for turn in range(100):
        assert askers.submit(f"cell{turn}", lambda turn=turn: turn, 2).result(SOON) == turn  # type: ignore[misc]
    assert threads() <= 2
    askers.close(wait=True)


def test_a_failure_is_for_the_caller() -> None:
    askers = Askers()

    def fails() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        askers.submit("one", fails, 1).result(SOON)
    assert askers.submit("one", lambda: 1, 1).result(SOON) == 1
    askers.close(wait=True)


def test_closing_cancels_what_waits_for_its_turn() -> None:
    askers, proceed, asked = Askers(), threading.Event(), threading.Event()

    def question() -> bool:
        asked.set()
        return proceed.wait(SOON)

    first = askers.submit("one", question, 1)
    second = askers.submit("one", question, 1)
    assert asked.wait(SOON)
    askers.close(wait=False)
    with pytest.raises(CancelledError):
        second.result(SOON)
    proceed.set()
    assert first.result(SOON)
