"""Side effects of a block are undone, newest first, exactly if the block fails."""

from __future__ import annotations

import pytest

from causeway.virt.undo import undone_on_failure


def test_a_failure_undoes_what_was_done_newest_first() -> None:
    undone: list[str] = []
    with pytest.raises(KeyboardInterrupt), undone_on_failure() as undo:
        undo.callback(undone.append, "first")
        undo.callback(undone.append, "second")
        raise KeyboardInterrupt
    assert undone == ["second", "first"]


def test_a_block_that_ends_normally_keeps_what_it_did() -> None:
    undone: list[str] = []

    def made() -> str:
        with undone_on_failure() as undo:
            undo.callback(undone.append, "first")
            return "made"

    assert made() == "made"
    assert undone == []


def test_what_fails_while_undoing_does_not_keep_the_rest_from_being_undone() -> None:
    undone: list[str] = []

    def fail() -> None:
        raise OSError("can't be undone")

    with pytest.raises(OSError, match="can't be undone") as caught, undone_on_failure() as undo:
        undo.callback(undone.append, "first")
        undo.callback(fail)
        raise ValueError("why it is undone")
    assert undone == ["first"]
    assert isinstance(caught.value.__context__, ValueError)
