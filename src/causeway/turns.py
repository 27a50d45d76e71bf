"""Locks by name, such as one for each server: whoever works on a thing holds its turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary


class Turns:
    """A lock for each of any number of names. One that nobody holds or waits for takes no memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: WeakValueDictionary[str, threading.RLock] = WeakValueDictionary()

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Nobody else has the turn of ``name`` in the block. Whoever has it may enter another block for it."""
        with self._lock:
            # This variable keeps the lock alive until the end of the block.
            turn = self._held.setdefault(name, threading.RLock())
        with turn:
            yield

    def __len__(self) -> int:
        """How many names have somebody who holds or awaits their turn."""
        return len(self._held)
