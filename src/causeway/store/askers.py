"""Threads that put questions to cells: shared by all cells, but only so many ask one cell at a time."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

# More than there can be questions at a time; threads are made when they are needed.
_THREADS = 10_000


class Askers:
    """What is more than a cell may be asked at a time waits for its turn, in order, and for that cell alone."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="cells")
        self._lock = threading.Lock()
        self._asking: Counter[str] = Counter()
        self._waiting: defaultdict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = defaultdict(deque)

    def submit(self, cell: str, question: Callable[[], T], at_a_time: int) -> Future[T]:
        """The answer, some time; cancelled before its turn comes, a question is not put."""
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
            # Not kept until the next question.
            del future, question

    def close(self, *, wait: bool) -> None:
        """What waits for its turn is cancelled; ``wait``: for what is being asked."""
        with self._lock:
            waiting = [future for questions in self._waiting.values() for future, _question in questions]
        for future in waiting:
            future.cancel()
        self._threads.shutdown(wait=wait, cancel_futures=True)
