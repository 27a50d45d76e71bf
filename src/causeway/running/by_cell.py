"""Does work for many cells at once, so that no cell waits for another.

A cell whose database or queue hangs blocks its own thread, and gets no new work meanwhile. All other cells continue.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping

from causeway import errors

LOG = logging.getLogger(__name__)


class ByCell:
    """Threads by cell. ``name``: the work, for log lines."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._threads: dict[Hashable, threading.Thread] = {}

    def start(self, cell: Hashable, work: Callable[[], object]) -> None:
        """Does a cell's work on a thread of its own, unless its last work is still running."""
        with self._lock:
            if cell not in self._threads:
                # A daemon thread: a stopping process must not wait for a cell that hangs.
                thread = threading.Thread(target=self._run, args=(cell, work), name=self._name, daemon=True)
                self._threads[cell] = thread
                thread.start()

    def each(self, work: Mapping[str, Callable[[], object]], patience: float) -> None:
        """Does the work of several cells, and waits for it, at most ``patience`` seconds."""
        end = time.monotonic() + patience
        for cell, one in work.items():
            self.start(cell, one)
        self._join(work, end)

    def wait(self, patience: float) -> None:
        """Waits until all work is done, at most ``patience`` seconds."""
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
            # The boundary of the thread: otherwise the error would be lost.
            LOG.exception("%s of cell %s failed unexpectedly", self._name, cell)
        finally:
            with self._lock:
                del self._threads[cell]
