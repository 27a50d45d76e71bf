"""Several side effects of which either all remain or none does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def undone_on_failure() -> Iterator[ExitStack]:
    """Undoes what a block did if the block fails.

    The block registers how to undo each of its side effects: ``undo.callback(work, ...)``. If the block raises, they run, newest
    first. If it ends normally, none of them runs.
    """
    with ExitStack() as undo:
        yield undo
        undo.pop_all()
