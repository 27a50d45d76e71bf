"""A wait for an answer that does not come ends, in a process that was forked, too."""

from __future__ import annotations

import multiprocessing
import socket

import pytest

from causeway.store.overdue import Waits

# Seconds: what waits for ever is noticed.
PATIENCE = 30.0


def _number(of: socket.socket) -> int:
    return of.fileno()


def _waits_without_answer(waits: Waits) -> None:
    mine, other = socket.socketpair()
    with mine, other:
        # Whoever shuts a socket down ends what waits for it.
        assert waits.limited(lambda of: of.recv(1), 0.05, _number)(mine) == b""


def test_a_wait_that_is_over_is_ended() -> None:
    _waits_without_answer(Waits(interval=0.05))


def test_an_answer_in_time_is_an_answer() -> None:
    mine, other = socket.socketpair()
    with mine, other:
        other.send(b"1")
        assert Waits(interval=0.05).limited(lambda of: of.recv(1), 5.0, _number)(mine) == b"1"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_ends_its_own_waits() -> None:
    waits = Waits(interval=0.05)
    _waits_without_answer(waits)
    child = multiprocessing.get_context("fork").Process(target=_waits_without_answer, args=(waits,))
    child.start()
    child.join(PATIENCE)
    try:
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()
