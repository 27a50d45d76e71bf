"""Runs requested sagas, renews their leases, and takes over abandoned ones.

Any number of processes share the sagas without a leader: the process that acquires the lease in the journal owns the saga.

A saga that waits for something long holds no thread (`causeway.parking`). One thread does nothing but renew leases. Another one
looks for abandoned sagas; it never waits for the services that these sagas work on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, Protocol

from causeway import errors
from causeway.model.sagas import ENDED, NOT_ACCEPTED, SagaState
from causeway.parking import Workers
from causeway.sagas.engine import Engine
from causeway.sagas.journal import S

LOG = logging.getLogger(__name__)


class Callers(Protocol[S]):
    """The methods that a keeper calls at the service that uses it."""

    def context_of(self, saga: S) -> Any:
        """Returns the context for resuming a saga that no request asks for."""

    def saga_ended(self, context: Any, saga: S) -> None:
        """Called when a saga has ended in this process. It may raise CausewayError, so nothing must depend on this call."""

    def hand_over(self, context: Any, saga_id: str) -> None:
        """Asks other processes to resume a saga at once, because this process stops. May raise CausewayError."""

    def check_proposed(self, sagas: list[S], run: Callable[[S], None]) -> None:
        """Checks sagas that were proposed more than a lease ago, and calls ``run`` with those that are accepted by now.

        Must not block.
        """


class Keeper(Generic[S]):
    """Runs the sagas that this process owns, and acquires others that no process works on."""

    def __init__(self, engine: Engine[S], callers: Callers[S]) -> None:
        environment = engine.environment
        self._engine = engine
        self._callers = callers
        self._journal = environment.journal
        self._life = environment.life
        self._clock = environment.clock
        self._observer = environment.observer
        self._stopping = environment.stopping
        self._lease = environment.options.lease
        self._lock = threading.Lock()
        self._at_work: dict[str, Any] = {}
        self._pool = Workers(environment.options.workers, environment.options.at_once, "sagas")
        self._blind_until = 0.0
        self._renewing = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for name, work in (("saga-leases", self._renew), ("saga-keeper", self._look))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether this process works on sagas, or waits for the end of sagas that it lost."""
        with self._lock:
            return bool(self._at_work) or self._engine.late.is_waiting

    def stop(self) -> None:
        """Waits for the running steps, then releases their sagas and asks other processes to resume them.

        Set ``stopping`` of the environment before.
        """
        with self._lock:
            # Nothing is submitted to the pool after this block, because `stopping` is set.
            self._pool.shutdown(wait=False)
        self._pool.shutdown(wait=True)
        with self._lock:
            never_begun, self._at_work = self._at_work, {}
        for saga_id, context in never_begun.items():
            self._hand_over(context, saga_id)
        self._renewing.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        if self._engine.late.is_waiting:
            LOG.warning(
                "Sagas that this process lost have not ended yet; run an audit to see whether something of them is orphaned"
            )
        self._journal.close()

    def submit(self, context: Any, saga_id: str) -> None:
        """Runs a saga as soon as a worker is free, unless this process works on it already.

        If this process stops, asks other processes to run the saga.
        """
        if not self._take(context, saga_id) and self._stopping.is_set():
            self._hand_over(context, saga_id)

    def resume(self, context: Any, saga_id: str) -> None:
        """Like `submit`, for a message that all processes get: if this process stops, it does not ask the others."""
        self._take(context, saga_id)

    def _take(self, context: Any, saga_id: str) -> bool:
        with self._lock:
            if saga_id in self._at_work or self._stopping.is_set():
                return False
            self._at_work[saga_id] = context
            self._pool.submit(partial(self._run, context, saga_id))
            return True

    def _hand_over(self, context: Any, saga_id: str) -> None:
        try:
            self._callers.hand_over(context, saga_id)
        except errors.CausewayError as failure:
            LOG.warning("Other conductors could not be asked to resume saga %s at once: %s", saga_id, failure.message)

    def _run(self, context: Any, saga_id: str) -> None:
        try:
            with self._observer.working_on(context, saga_id):
                saga = self._engine.run(context, saga_id)
        except errors.CausewayError as failure:
            LOG.warning("Saga %s is no longer worked on here: %s %s", saga_id, failure.message, failure.details)
            return
        except Exception:
            # The boundary of the thread: nothing above it would log the error. When the lease expires, the saga is resumed.
            LOG.exception(
                "Saga %s was interrupted by an unexpected error; it is resumed when its lease has expired", saga_id
            )
            return
        finally:
            with self._lock:
                self._at_work.pop(saga_id, None)
        if saga is None:
            return
        if saga.state in ENDED:
            self._end(context, saga)
        elif saga.state is not SagaState.STUCK and self._stopping.is_set():
            LOG.info("Saga %s is handed over", saga_id)
            self._hand_over(context, saga_id)

    def _end(self, context: Any, saga: S) -> None:
        LOG.info("Saga %s (%s): %s", saga.id, saga.recipe, saga.state)
        self._observer.saga_ended(saga)
        try:
            self._callers.saga_ended(context, saga)
        except errors.CausewayError as failure:
            LOG.warning("Nobody was notified of the end of saga %s: %s %s", saga.id, failure.message, failure.details)

    def _renew(self) -> None:
        # Leases are also renewed while the process stops, because it waits for the running steps.
        while not self._renewing.wait(self._lease / 3):
            at_work = [saga_id for saga_id in self._life.at_work() if not self._observer.hangs(saga_id)]
            with self._logging_errors("Leases can't be renewed"):
                self._journal.renew(self._life.owner, at_work, self._lease)

    def _look(self) -> None:
        while not self._stopping.wait(self._lease / 3):
            with self._logging_errors("The journal can't be read"):
                self.take_over()
                self._engine.late.look(self._submit_to_pool)

    @contextmanager
    def _logging_errors(self, trouble: str) -> Iterator[None]:
        """Logs any error of the block, so that the thread continues: no other one renews leases or takes sagas over."""
        try:
            yield
        except Exception as failure:
            self._blind_until = self._clock.boot() + self._lease
            if isinstance(failure, errors.CausewayError):
                LOG.warning("%s: %s %s", trouble, failure.message, failure.details)
            else:
                LOG.exception("%s", trouble)

    def _submit_to_pool(self, work: Callable[[], None]) -> None:
        with self._lock:
            if not self._stopping.is_set():
                self._pool.submit(work)

    def take_over(self) -> None:
        """Resumes every saga that no process works on, including those of earlier lives of this process.

        After the journal was unreachable, waits for the time of a lease, in which other owners can renew theirs.
        """
        was_blind = self._clock.boot() < self._blind_until
        with self._lock:
            at_work = self._at_work.keys() | self._life.at_work()
        proposed: list[S] = []
        for saga in self._journal.abandoned(
            self._life.mine, self._lease, at_work=at_work, knowledge=self._engine.knowledge.digest
        ):
            if was_blind and saga.owner is not None and saga.owner not in self._life.mine:
                continue
            if saga.state in NOT_ACCEPTED:
                proposed.append(saga)
            else:
                self._resume(saga)
        if proposed:
            self._callers.check_proposed(proposed, self._resume)

    def _resume(self, saga: S) -> None:
        self.submit(self._callers.context_of(saga), saga.id)
