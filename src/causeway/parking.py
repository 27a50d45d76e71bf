"""Runs many tasks on few threads: a task that waits for a result is parked, and its thread runs other tasks.

A task is a plain function. When it calls `result_of`, it is parked until the result is there, and then continues on the same
thread. Tasks are greenlets, as in SQLAlchemy's asyncio extension, so a function looks the same whether it runs as a task or not:
outside of a task, `result_of` blocks its thread.

A task must not call `result_of` while it holds a lock: another task of its thread may need the lock.
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
    """A function that runs on the thread of ``worker``, from its beginning to its end."""

    def __init__(self, work: Callable[[], object], workers: Workers, worker: _Worker) -> None:
        # The hub is its parent, no matter who makes it: when the task is parked or ends, the hub runs the next one.
        super().__init__(work, worker.hub)
        self.gr_context = contextvars.copy_context()
        self.workers, self.worker = workers, worker
        # Identifies the wait that the task is in. None: it runs, or is ready to run.
        self.waits: object | None = None


@dataclass(order=True)
class _Deadline:
    """The moment (of the monotonic clock) at which a wait of a task ends at the latest."""

    when: float
    task: _Task = field(compare=False)
    wait: object = field(compare=False)

    @property
    def is_over(self) -> bool:
        return self.task.waits is not self.wait


class _Worker:
    """One thread. The lock of its `Workers` guards all fields. ``hub`` is the greenlet that picks the next task."""

    def __init__(self, lock: threading.Lock) -> None:
        self.hub: greenlet.greenlet
        self.wake = threading.Condition(lock)
        self.is_idle = False
        self.ready: deque[_Task] = deque()
        self.parked = 0
        self.deadlines: list[_Deadline] = []


class Workers:
    """Runs tasks on at most ``threads`` threads, at most ``at_once`` of them at a time; the others wait in a queue."""

    def __init__(self, threads: int, at_once: int, name: str) -> None:
        self._size, self._at_once, self._name = threads, at_once, name
        self._lock = threading.Lock()
        self._queue: deque[Callable[[], object]] = deque()
        self._begun = 0
        self._closed = False
        self._workers: list[_Worker] = []
        self._threads: list[threading.Thread] = []

    def submit(self, work: Callable[[], object]) -> None:
        """Runs ``work`` as a task, later. Logs what it raises. Raises RuntimeError after `shutdown`."""
        with self._lock:
            if self._closed:
                raise RuntimeError(f"the workers {self._name} were shut down: they accept no more tasks")
            self._queue.append(work)
            self._wake_or_start_thread()

    def shutdown(self, *, wait: bool) -> None:
        """Accepts no more tasks, and discards those that have not begun. With ``wait``, returns when the others have ended."""
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
        # The current request is kept per thread, and other tasks set theirs meanwhile.
        request = oslo_context.get_current()
        worker.hub.switch()
        if request is not None:
            request.update_store()

    def beside(self, task: _Task, work: Callable[[], object]) -> None:
        """Runs ``work`` as another task on the thread of ``task``, while ``task`` is parked."""
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

    def _wake_or_start_thread(self) -> None:
        """Wakes the idle thread that has the fewest parked tasks, so that it begins a queued task; starts one if none is idle."""
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
        """Waits until a task can continue or begin, and returns it; None after a shutdown, when none is left."""
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
    """Whether the caller runs as a task, and so blocks no thread in `result_of`."""
    return isinstance(greenlet.getcurrent(), _Task)


def result_of(future: Future[T], timeout: float | None = None) -> T:
    """Waits for the future's result and returns it. Raises what the work raised, and TimeoutError after ``timeout`` seconds."""
    task = greenlet.getcurrent()
    if isinstance(task, _Task) and not future.done():
        task.workers.park(task, future, timeout)
        timeout = 0
    return future.result(timeout)


class Beside:
    """Runs work beside its caller. If the caller is a task: on its thread, while it is parked. Otherwise: in ``pool``."""

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
        """Waits until all work that was begun has ended, by a result or an error."""
        for future in self._begun:
            done: Future[None] = Future()
            future.add_done_callback(lambda _future, done=done: done.set_result(None))  # type: ignore[misc]
            result_of(done)


@contextmanager
def beside() -> Iterator[Beside]:
    """Gives a `Beside`, and waits at its end for the work that was begun with it."""
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
