"""Threads that ask cells. All cells share them, but only a limited number asks one cell at a time."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

# More threads than there can be questions at a time. They are made when they are needed.
_THREADS = 10_000


class Askers:
    """Questions above a cell's limit wait for their turn, in order, without delaying other cells."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="cells")
        self._lock = threading.Lock()
        self._asking: Counter[str] = Counter()
        self._waiting: defaultdict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = defaultdict(deque)

    def submit(self, cell: str, question: Callable[[], T], at_a_time: int) -> Future[T]:
        """Asks a question. Returns a future of the answer, which can be cancelled until the question's turn comes."""
        future: Future[T] = Future()
        with self._lock:
            self._waiting[cell].append((future, question))
            if self._asking[cell] >= at_a_time:
                return future
            self._asking[cell] += 1
        self._threads.submit(self._ask, cell)
        return future

    def _ask(self, cell: str) -> None:
        while True:
            with self._lock:
                waiting = self._waiting[cell]
                if not waiting:
                    self._asking[cell] -= 1
                    if not self._asking[cell]:
                        del self._asking[cell], self._waiting[cell]
                    return
                future, question = waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                answer = question()
            except BaseException as failure:  # noqa: BLE001 - who asked raises it
                future.set_exception(failure)
            else:
                future.set_result(answer)
            # So that the answer is not kept until the next question.
            del future, question

    def close(self, *, wait: bool) -> None:
        """Cancels waiting questions. ``wait``: waits for those under way."""
        with self._lock:
            waiting = [future for questions in self._waiting.values() for future, _question in questions]
        for future in waiting:
            future.cancel()
        self._threads.shutdown(wait=wait, cancel_futures=True)
