"""Work in the background, for which no request waits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from causeway import errors

LOG = logging.getLogger(__name__)


class Background:
    """Does one piece of work at a time, in a thread that ends with the work. A start while it is running has no effect."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, work: Callable[[], object]) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, args=(work,), name=self._name, daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Waits until the running work, if there is any, has ended."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except errors.CausewayError as failure:
            LOG.warning("%s: %s %s", self._name, failure.message, failure.details)
        except Exception:
            # The next request starts the work again. Until then requests use older knowledge, unless it is too old.
            LOG.exception("%s failed", self._name)
        finally:
            with self._lock:
                self._thread = None
