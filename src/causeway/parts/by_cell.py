"""Work for many cells at once, in which no cell's waits for another's.

A cell whose database or queue hangs keeps the thread that works for it, and gets no new work meanwhile; all others continue.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping

from causeway import errors

LOG = logging.getLogger(__name__)


class ByCell:
    """Threads by cell. ``name`` says in log lines what it is that can't be done."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._threads: dict[Hashable, threading.Thread] = {}

    def start(self, cell: Hashable, work: Callable[[], object]) -> None:
        """Does a cell's work on a thread of its own; nothing, while its last work is not done."""
        with self._lock:
            if cell not in self._threads:
                # A daemon: a process that is to end does not wait for a cell that hangs.
                thread = threading.Thread(target=self._run, args=(cell, work), name=self._name, daemon=True)
                self._threads[cell] = thread
                thread.start()

    def each(self, work: Mapping[str, Callable[[], object]], patience: float) -> None:
        """Does the work of several cells, and waits ``patience`` seconds for all of it, but no longer."""
        end = time.monotonic() + patience
        for cell, one in work.items():
            self.start(cell, one)
        self._join(work, end)

    def wait(self, patience: float) -> None:
        """Until all that was started is done, ``patience`` seconds at most."""
        with self._lock:
            cells = list(self._threads)
        self._join(cells, time.monotonic() + patience)

    def _join(self, cells: Iterable[Hashable], end: float) -> None:
        with self._lock:
            threads = [self._threads[cell] for cell in cells if cell in self._threads]
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _run(self, cell: Hashable, work: Callable[[], object]) -> None:
        try:
            work()
        except errors.CausewayError as failure:
            LOG.warning("%s of cell %s: %s %s", self._name, cell, failure.message, failure.details)
        except Exception:
            # The boundary of the thread: nobody else would hear of it.
            LOG.exception("%s of cell %s failed unexpectedly", self._name, cell)
        finally:
            with self._lock:
                del self._threads[cell]
