"""Many tasks on few threads: one that waits for something that takes long holds no thread meanwhile.

A task is a plain function. Where it waits (`result_of`) it is parked, and its thread works on others. It continues, on the same
thread, when what it waits for is there. Tasks are greenlets, as under SQLAlchemy's asyncio extension, so that a function reads
the same whether it is a task or not: outside of tasks `result_of` holds its thread.

A task that holds a lock must not wait: another one on its thread may want the lock.
"""

from __future__ import annotations

import contextvars
import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import greenlet
from oslo_context import context as oslo_context

LOG = logging.getLogger(__name__)

T = TypeVar("T")


class _Task(greenlet.greenlet):
    """``worker``: its thread, from its beginning to its end."""

    def __init__(self, work: Callable[[], object], workers: Workers, worker: _Worker) -> None:
        # Whoever makes it: when it is parked or ends, its thread begins the next.
        super().__init__(work, worker.hub)
        self.gr_context = contextvars.copy_context()
        self.workers, self.worker = workers, worker
        # What may wake it: the wait that it is in. None: it runs, or is about to.
        self.waits: object | None = None


@dataclass(order=True)
class _Deadline:
    """A task's wait ends at ``when``, of the monotonic clock, if it has not ended before."""

    when: float
    task: _Task = field(compare=False)
    wait: object = field(compare=False)

    @property
    def is_over(self) -> bool:
        return self.task.waits is not self.wait


class _Worker:
    """One thread. All fields are guarded by the lock of its `Workers`. ``hub``: where it looks for what to do."""

    def __init__(self, lock: threading.Lock) -> None:
        self.hub: greenlet.greenlet
        self.wake = threading.Condition(lock)
        self.is_idle = False
        self.ready: deque[_Task] = deque()
        self.parked = 0
        self.deadlines: list[_Deadline] = []


class Workers:
    """Up to ``threads`` threads for up to ``at_once`` tasks that have begun; others wait for their turn."""

    def __init__(self, threads: int, at_once: int, name: str) -> None:
        self._size, self._at_once, self._name = threads, at_once, name
        self._lock = threading.Lock()
        self._queue: deque[Callable[[], object]] = deque()
        self._begun = 0
        self._closed = False
        self._workers: list[_Worker] = []
        self._threads: list[threading.Thread] = []

    def submit(self, work: Callable[[], object]) -> None:
        """Has a task done. What it raises is logged. Raises RuntimeError after `shutdown`."""
        with self._lock:
            if self._closed:
                raise RuntimeError("these workers take nothing new")
            self._queue.append(work)
            self._call_one()

    def shutdown(self, *, wait: bool) -> None:
        """Takes nothing new and discards what has not begun; with ``wait``, returns when all that has begun is done."""
        with self._lock:
            self._closed = True
            self._queue.clear()
            for worker in self._workers:
                worker.wake.notify()
            threads = list(self._threads)
        if wait:
            for thread in threads:
                thread.join()

    def park(self, task: _Task, until: Future[Any], timeout: float | None) -> None:
        """Called by a task: returns when ``until`` is done, or after ``timeout`` seconds."""
        worker, wait = task.worker, object()
        with self._lock:
            task.waits = wait
            worker.parked += 1
            if timeout is not None:
                heapq.heappush(worker.deadlines, _Deadline(time.monotonic() + timeout, task, wait))
        until.add_done_callback(lambda _done: self._wake(task, wait))
        # Of the thread, which others use meanwhile.
        request = oslo_context.get_current()
        worker.hub.switch()
        if request is not None:
            request.update_store()

    def beside(self, task: _Task, work: Callable[[], object]) -> None:
        """Has something done as a task on the same thread, whenever ``task`` is parked."""
        with self._lock:
            self._begun += 1
            task.worker.ready.append(_Task(work, self, task.worker))

    def _wake(self, task: _Task, wait: object) -> None:
        with self._lock:
            self._make_ready(task, wait)
            task.worker.wake.notify()

    def _make_ready(self, task: _Task, wait: object) -> None:
        if task.waits is wait:
            task.waits = None
            task.worker.parked -= 1
            task.worker.ready.append(task)

    def _call_one(self) -> None:
        """Has a thread look for what has not begun: an idle one, the one with the fewest tasks of its own."""
        if self._begun >= self._at_once:
            return
        idle = [worker for worker in self._workers if worker.is_idle]
        if idle:
            chosen = min(idle, key=lambda worker: worker.parked)
            chosen.is_idle = False
            chosen.wake.notify()
        elif len(self._workers) < self._size:
            worker = _Worker(self._lock)
            thread = threading.Thread(
                target=self._run, args=(worker,), name=f"{self._name}-{len(self._workers)}", daemon=True
            )
            self._workers.append(worker)
            self._threads.append(thread)
            thread.start()

    def _run(self, worker: _Worker) -> None:
        worker.hub = greenlet.getcurrent()
        while (task := self._next(worker)) is not None:
            try:
                task.switch()
            except BaseException:
                LOG.exception("A task of %s failed unexpectedly", self._name)
            if task.dead:
                with self._lock:
                    self._begun -= 1

    def _next(self, worker: _Worker) -> _Task | None:
        """Waits for a task that can continue, or begin; None: there will be none any more."""
        with self._lock:
            while True:
                now = time.monotonic()
                while worker.deadlines and (worker.deadlines[0].is_over or worker.deadlines[0].when <= now):
                    late = heapq.heappop(worker.deadlines)
                    self._make_ready(late.task, late.wait)
                if worker.ready:
                    return worker.ready.popleft()
                if self._queue and self._begun < self._at_once:
                    self._begun += 1
                    return _Task(self._queue.popleft(), self, worker)
                if self._closed and not worker.parked:
                    return None
                worker.is_idle = True
                worker.wake.wait(worker.deadlines[0].when - now if worker.deadlines else None)
                worker.is_idle = False


def in_task() -> bool:
    """Whether the caller holds no thread while it waits in `result_of`."""
    return isinstance(greenlet.getcurrent(), _Task)


def result_of(future: Future[T], timeout: float | None = None) -> T:
    """Waits for a result, ``timeout`` seconds at most (TimeoutError), and returns it, or raises what it raised."""
    task = greenlet.getcurrent()
    if isinstance(task, _Task) and not future.done():
        task.workers.park(task, future, timeout)
        timeout = 0
    return future.result(timeout)


class Beside:
    """What is done beside its caller: on the caller's thread whenever that waits, if it is a task; else on one of its own."""

    def __init__(self, pool: ThreadPoolExecutor | None) -> None:
        self._pool = pool
        self._begun: list[Future[Any]] = []

    def begin(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self._begun.append(future)
        task = greenlet.getcurrent()
        if isinstance(task, _Task):
            task.workers.beside(task, lambda: _fulfil(future, work))
        else:
            assert self._pool is not None
            self._pool.submit(_fulfil, future, work)
        return future

    def wait(self) -> None:
        """Until all of it is done, however it ended."""
        for future in self._begun:
            done: Future[None] = Future()
            future.add_done_callback(lambda _future, done=done: done.set_result(None))  # type: ignore[misc]
            result_of(done)


@contextmanager
def beside() -> Iterator[Beside]:
    """Waits at its end for what was begun."""
    if in_task():
        found = Beside(None)
        try:
            yield found
        finally:
            found.wait()
    else:
        with ThreadPoolExecutor(1, thread_name_prefix="beside") as pool:
            yield Beside(pool)


def _fulfil(future: Future[T], work: Callable[[], T]) -> None:
    try:
        found = work()
    except BaseException as failure:
        future.set_exception(failure)
        if not isinstance(failure, Exception):
            raise
    else:
        future.set_result(found)
