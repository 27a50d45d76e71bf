"""Tasks that wait hold no thread."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextvars import ContextVar

import pytest
from oslo_context import context as oslo_context

from causeway import parking
from causeway.parking import Workers

PATIENCE = 30.0


@pytest.fixture
def workers() -> Workers:
    return Workers(2, 1000, "test")


def test_a_thousand_tasks_wait_on_two_threads(workers: Workers) -> None:
    gate: Future[str] = Future()
    waiting = threading.Semaphore(0)
    came: list[str] = []
    threads = set()

    def work() -> None:
        waiting.release()
        threads.add(threading.current_thread().name)
        came.append(parking.result_of(gate))

    for _ in range(1000):
        workers.submit(work)
    for _ in range(1000):
        assert waiting.acquire(timeout=PATIENCE)
    gate.set_result("open")
    workers.shutdown(wait=True)
    assert came == ["open"] * 1000
    assert threads <= {"test-0", "test-1"}


def test_no_more_begin_than_may(workers: Workers) -> None:
    workers = Workers(2, 3, "test")
    gates: list[Future[None]] = [Future() for _ in range(5)]
    began = threading.Semaphore(0)
    running: list[int] = []

    def work(number: int) -> None:
        running.append(number)
        began.release()
        parking.result_of(gates[number])

    for number in range(5):
        workers.submit(lambda number=number: work(number))  # type: ignore[misc]
    for _ in range(3):
        assert began.acquire(timeout=PATIENCE)
    assert len(running) == 3
    gates[running[0]].set_result(None)
    assert began.acquire(timeout=PATIENCE)
    assert len(running) == 4
    for gate in gates:
        if not gate.done():
            gate.set_result(None)
    assert began.acquire(timeout=PATIENCE)
    workers.shutdown(wait=True)


def test_a_wait_ends_when_its_time_is_up(workers: Workers) -> None:
    ended: Future[bool] = Future()

    def work() -> None:
        try:
            parking.result_of(Future(), 0.01)
        except TimeoutError:
            ended.set_result(True)

    workers.submit(work)
    assert ended.result(PATIENCE)
    workers.shutdown(wait=True)


def test_a_result_that_comes_after_its_time_wakes_nobody(workers: Workers) -> None:
    late: Future[None] = Future()
    ended: Future[int] = Future()

    def work() -> None:
        with pytest.raises(TimeoutError):
            parking.result_of(late, 0.01)
        late.set_result(None)
        second: Future[int] = Future()
        threading.Timer(0.05, second.set_result, (2,)).start()
        ended.set_result(parking.result_of(second))

    workers.submit(work)
    assert ended.result(PATIENCE) == 2
    workers.shutdown(wait=True)


def test_what_a_result_raises_is_raised(workers: Workers) -> None:
    failing: Future[None] = Future()
    ended: Future[str] = Future()

    def work() -> None:
        try:
            parking.result_of(failing)
        except ValueError as failure:
            ended.set_result(str(failure))

    workers.submit(work)
    failing.set_exception(ValueError("broken"))
    assert ended.result(PATIENCE) == "broken"
    workers.shutdown(wait=True)


def test_each_task_keeps_its_request_and_its_context() -> None:
    workers = Workers(1, 10, "test")
    scope: ContextVar[str] = ContextVar("scope", default="none")
    gates: dict[str, Future[None]] = {name: Future() for name in ("one", "two")}
    parked = threading.Semaphore(0)
    seen: dict[str, tuple[str | None, str]] = {}

    def work(name: str) -> None:
        oslo_context.RequestContext(request_id=f"req-{name}")
        scope.set(name)
        parked.release()
        parking.result_of(gates[name])
        current = oslo_context.get_current()
        seen[name] = (current.request_id if current else None, scope.get())

    for name in gates:
        workers.submit(lambda name=name: work(name))  # type: ignore[misc]
    for _ in gates:
        assert parked.acquire(timeout=PATIENCE)
    gates["one"].set_result(None)
    gates["two"].set_result(None)
    workers.shutdown(wait=True)
    assert seen == {"one": ("req-one", "one"), "two": ("req-two", "two")}


def test_what_a_task_has_done_beside_it_is_waited_for(workers: Workers) -> None:
    gate: Future[str] = Future()
    ended: Future[list[str]] = Future()

    def work() -> None:
        found = []
        with parking.beside() as helper:
            sending = helper.begin(lambda: parking.result_of(gate))
            found.append("begun")
            found.append(parking.result_of(helper.begin(lambda: "soon")))
        found.append(sending.result(0))
        ended.set_result(found)

    workers.submit(work)
    gate.set_result("sent")
    assert ended.result(PATIENCE) == ["begun", "soon", "sent"]
    workers.shutdown(wait=True)


def test_outside_of_tasks_threads_wait() -> None:
    gate: Future[int] = Future()
    with parking.beside() as helper:
        sent = helper.begin(lambda: parking.result_of(gate) + 1)
        gate.set_result(1)
    assert sent.result(0) == 2
    assert not parking.in_task()


def test_what_has_not_begun_is_discarded_at_the_end() -> None:
    workers = Workers(1, 1, "test")
    gate: Future[None] = Future()
    began = threading.Semaphore(0)
    done: list[int] = []

    def first() -> None:
        began.release()
        parking.result_of(gate)
        done.append(1)

    workers.submit(first)
    assert began.acquire(timeout=PATIENCE)
    workers.submit(lambda: done.append(2))
    workers.shutdown(wait=False)
    with pytest.raises(RuntimeError):
        workers.submit(lambda: done.append(3))
    gate.set_result(None)
    workers.shutdown(wait=True)
    assert done == [1]


@pytest.mark.parametrize("failure", [ValueError, SystemExit])
def test_a_task_that_fails_stops_no_other(failure: type[BaseException]) -> None:
    workers = Workers(1, 1, "test")
    ended: Future[None] = Future()

    def fail() -> None:
        raise failure

    workers.submit(fail)
    workers.submit(lambda: ended.set_result(None))
    ended.result(PATIENCE)
    workers.shutdown(wait=True)
