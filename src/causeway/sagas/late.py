"""Undoes the last call of a process that had lost its saga without noticing.

Before a process changes anything, it checks whether it still owns the saga (`Run.check_lease`). But its machine may be suspended
between that check and the next call to another service, and those services know nothing about epochs. So one call can take effect
after another process has undone the saga, or has made the same call. When the slow process finds that its saga was taken over, or
can't find out because the journal does not answer, it waits for the end of the saga. Then its recipe undoes what came too late
(`Recipe.undo_late`). If another saga uses the same things by then, the undo is tried again until that one has ended. No worker
waits for this: the keeper checks from time to time whether the saga has ended.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from causeway import errors
from causeway.model.sagas import ENDED
from causeway.sagas.environment import Environment
from causeway.sagas.run import Run

LOG = logging.getLogger(__name__)

# The number of leases for which this process waits for the end of the saga, and of others that use the same things. After that,
# an audit has to find what is orphaned.
PATIENCE = 10

Undo = Callable[[Any], None]


@dataclass(frozen=True)
class _Lost:
    """``until``: when this process stops waiting for the saga's end (the clock's time since boot)."""

    run: Run[Any, Any]
    undo: Undo
    until: float


class Late:
    """The sagas that other processes took over from this process and that have not ended yet."""

    def __init__(self, environment: Environment[Any]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        #: by saga
        self._lost: dict[str, _Lost] = {}
        self._being_undone: set[str] = set()

    @property
    def is_waiting(self) -> bool:
        with self._lock:
            return bool(self._lost or self._being_undone)

    def add(self, run: Run[Any, Any], undo: Undo | None) -> None:
        """Adds a saga that another process may have taken over while this one worked on it, unless it is behind its pivot.

        ``undo``: undoes what this process did too late; None if the recipe has nothing to undo.
        """
        if undo is None or run.saga.pivoted or self._still_owns(run):
            return
        environment = self._environment
        until = environment.clock.boot() + PATIENCE * environment.options.lease
        with self._lock:
            self._lost[run.saga.id] = _Lost(run, undo, until)

    def _still_owns(self, run: Run[Any, Any]) -> bool:
        """Whether no other process has acquired the saga, so that only the answer to a write was lost.

        Also True for a saga that is not in the journal, because it never began.
        """
        try:
            found = self._environment.journal.get(run.saga.id)
        except errors.DatabaseFailed:
            return False
        except errors.NotFound:
            return True
        return bool(found.epoch == run.saga.epoch)

    def look(self, do: Callable[[Callable[[], None]], None]) -> None:
        """Passes to ``do`` the undo of each lost saga that has ended.

        Sends one statement to the database, or none if no saga was lost.
        """
        with self._lock:
            lost = dict(self._lost)
        if not lost:
            return
        states = self._environment.journal.states(lost.keys())
        for saga_id, each in lost.items():
            state = states.get(saga_id)
            if state in ENDED:
                with self._lock:
                    self._being_undone.add(saga_id)
                    del self._lost[saga_id]
                do(partial(self._end, each))
            elif state is None or self._is_over(each):
                if state is not None:
                    LOG.warning(
                        "Saga %s was lost and did not end; run an audit to see whether something is orphaned", saga_id
                    )
                with self._lock:
                    del self._lost[saga_id]

    def _is_over(self, lost: _Lost) -> bool:
        return self._environment.clock.boot() >= lost.until

    def _end(self, lost: _Lost) -> None:
        saga = lost.run.saga
        try:
            self._undo(lost)
        except errors.OperationUnderWay as other:
            if not self._is_over(lost):
                LOG.info("Saga %s: what came too late is undone later: %s", saga.id, other.message)
                with self._lock:
                    self._lost[saga.id] = lost
            else:
                _warn(lost, other)
        except errors.CausewayError as failure:
            _warn(lost, failure)
        except Exception:
            # The boundary of a worker's thread.
            LOG.exception("Saga %s: what came too late could not be undone, run an audit", saga.id)
        finally:
            with self._lock:
                self._being_undone.discard(saga.id)

    def _undo(self, lost: _Lost) -> None:
        run = lost.run
        run.is_over = True
        # Hosts that have seen the last owner's orders refuse orders of an earlier epoch.
        run.saga.epoch = self._environment.journal.get(run.saga.id).epoch
        lost.undo(run)


def _warn(lost: _Lost, failure: errors.CausewayError) -> None:
    LOG.warning(
        "Saga %s: what came too late could not be undone, run an audit: %s %s",
        lost.run.saga.id,
        failure.message,
        failure.details,
    )
