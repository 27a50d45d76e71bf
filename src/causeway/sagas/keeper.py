"""Runs requested sagas, renews their leases, and takes over abandoned ones.

Any number of processes share the sagas without a leader: the process that acquires the lease in the journal owns the saga.

A saga that waits for something long holds no thread (`causeway.parking`). One thread only renews leases. Looking for
abandoned sagas never waits for the services that they work on.
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
    """The callers of a keeper."""

    def context_of(self, saga: S) -> Any:
        """The context in which a saga is resumed without a request."""

    def saga_ended(self, context: Any, saga: S) -> None:
        """A saga has ended in this process. May raise CausewayError, so others must not depend on this call."""

    def hand_over(self, context: Any, saga_id: str) -> None:
        """Asks others to resume a saga at once, because this process stops. May raise CausewayError."""

    def check_proposed(self, sagas: list[S], run: Callable[[S], None]) -> None:
        """Checks sagas that were proposed a lease ago, and calls ``run`` with those that were accepted since. Must not block."""


class Keeper(Generic[S]):
    """The sagas that this process works on."""

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
        self._in_hand: dict[str, Any] = {}
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
        """Whether this process works on sagas, or sagas that it lost have not ended yet."""
        with self._lock:
            return bool(self._in_hand) or self._engine.late.is_waiting

    def stop(self) -> None:
        """Waits for the steps under way, then releases their sagas and asks others to resume them.

        ``stopping`` must have been set.
        """
        with self._lock:
            # From here on nothing is submitted to the pool.
            self._pool.shutdown(wait=False)
        self._pool.shutdown(wait=True)
        with self._lock:
            never_begun, self._in_hand = self._in_hand, {}
        for saga_id, context in never_begun.items():
            self._hand_over(context, saga_id)
        self._renewing.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        if self._engine.late.is_waiting:
            LOG.warning(
                "Sagas that this process lost have not ended yet; an audit shows whether something of them is orphaned"
            )
        self._journal.close()

    def submit(self, context: Any, saga_id: str) -> None:
        """Runs a saga as soon as a worker is free, unless it is being worked on already. If this process stops, others run it."""
        if not self._take(context, saga_id) and self._stopping.is_set():
            self._hand_over(context, saga_id)

    def resume(self, context: Any, saga_id: str) -> None:
        """Like `submit`, for a message that went to all processes: if this one stops, it does not ask others again."""
        self._take(context, saga_id)

    def _take(self, context: Any, saga_id: str) -> bool:
        with self._lock:
            if saga_id in self._in_hand or self._stopping.is_set():
                return False
            self._in_hand[saga_id] = context
            self._pool.submit(partial(self._run, context, saga_id))
            return True

    def _hand_over(self, context: Any, saga_id: str) -> None:
        try:
            self._callers.hand_over(context, saga_id)
        except errors.CausewayError as failure:
            LOG.warning("No conductor could be asked to resume saga %s: %s", saga_id, failure.message)

    def _run(self, context: Any, saga_id: str) -> None:
        try:
            with self._observer.working_on(context, saga_id):
                saga = self._engine.run(context, saga_id)
        except errors.CausewayError as failure:
            LOG.warning("Saga %s is no longer worked on here: %s %s", saga_id, failure.message, failure.details)
            return
        except Exception:
            # The boundary of the thread: nothing above it would log the error. When the lease expires, the saga is resumed.
            LOG.exception("Saga %s was left in the middle", saga_id)
            return
        finally:
            with self._lock:
                self._in_hand.pop(saga_id, None)
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
            LOG.warning("The end of saga %s is noticed later: %s %s", saga.id, failure.message, failure.details)

    def _renew(self) -> None:
        # Also while the process stops, since it waits for the steps under way.
        while not self._renewing.wait(self._lease / 3):
            at_work = [saga_id for saga_id in self._life.at_work() if not self._observer.hangs(saga_id)]
            with self._seeing("Leases can't be renewed"):
                self._journal.renew(self._life.owner, at_work, self._lease)

    def _look(self) -> None:
        while not self._stopping.wait(self._lease / 3):
            with self._seeing("The journal can't be read"):
                self.take_over()
                self._engine.late.look(self._in_pool)

    @contextmanager
    def _seeing(self, trouble: str) -> Iterator[None]:
        """Logs any error, so that the thread continues: without it no lease would be renewed and no saga taken over."""
        try:
            yield
        except Exception as failure:
            self._blind_until = self._clock.boot() + self._lease
            if isinstance(failure, errors.CausewayError):
                LOG.warning("%s: %s %s", trouble, failure.message, failure.details)
            else:
                LOG.exception("%s", trouble)

    def _in_pool(self, work: Callable[[], None]) -> None:
        with self._lock:
            if not self._stopping.is_set():
                self._pool.submit(work)

    def take_over(self) -> None:
        """Resumes every saga that no process works on, including those of earlier lives of this process.

        After the journal was unreachable, owners get the time of a lease to renew theirs.
        """
        was_blind = self._clock.boot() < self._blind_until
        with self._lock:
            in_hand = self._in_hand.keys() | self._life.at_work()
        proposed: list[S] = []
        for saga in self._journal.abandoned(
            self._life.mine, self._lease, in_hand=in_hand, knowledge=self._engine.knowledge.digest
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
