"""Work by cell: one that hangs or fails holds up no other."""

from __future__ import annotations

import logging
import threading

import pytest

from causeway import errors
from causeway.running.by_cell import ByCell

PATIENCE = 60.0


def test_one_that_hangs_holds_up_no_other_and_gets_nothing_new() -> None:
    work, back, done, again = ByCell("work"), threading.Event(), threading.Event(), threading.Event()
    work.each({"dead": lambda: back.wait(PATIENCE), "well": done.set}, 0.05)
    assert done.wait(PATIENCE)
    done.clear()
    work.each({"dead": again.set, "well": done.set}, 0.05)
    assert done.wait(PATIENCE) and not again.is_set()
    back.set()
    work.each({"dead": lambda: None}, PATIENCE)
    work.each({"dead": again.set}, PATIENCE)
    assert again.is_set()


@pytest.mark.parametrize("failure", [errors.DatabaseFailed("It is gone."), ValueError("of a kind nobody thought of")])
def test_one_that_fails_is_logged_and_done_again(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    work, done = ByCell("Looking"), threading.Event()

    def fail() -> None:
        raise failure

    with caplog.at_level(logging.WARNING):
        work.each({"cell1": fail}, PATIENCE)
    assert "Looking of cell cell1" in caplog.text
    work.each({"cell1": done.set}, PATIENCE)
    assert done.is_set()
