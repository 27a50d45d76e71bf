"""Undoes the last call of a process that had lost its saga without knowing.

A process that was only slow (its machine was suspended, say) checks whether it still owns a saga before it changes anything
(`Run.check_lease`). But it may have been stopped between that look and the call to a service that follows; services around us
know nothing of epochs. So one call can take effect after another process has undone the saga, or done the same itself. Whoever
finds out that a saga was taken over from it, or cannot find out because the journal does not answer, therefore waits for the
saga's end and has its recipe undo what came too late (`Recipe.undo_late`). No worker waits meanwhile: the keeper looks from
time to time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from causeway import errors
from causeway.model.sagas import ENDED
from causeway.sagas.environment import Environment
from causeway.sagas.run import Run

LOG = logging.getLogger(__name__)

# How many leases the other process has to end the saga, before it is left to an audit.
PATIENCE = 10

Undo = Callable[[Any], None]


class Late:
    """The sagas that other processes took over from this one, until they have ended."""

    def __init__(self, environment: Environment[Any]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        # saga -> (its run, how to undo what it did too late, until when its end is waited for)
        self._lost: dict[str, tuple[Run[Any, Any], Undo, float]] = {}

    @property
    def is_waiting(self) -> bool:
        with self._lock:
            return bool(self._lost)

    def add(self, run: Run[Any, Any], undo: Undo | None) -> None:
        """Notes a saga that may have been taken over while this process worked on it. After its pivot nothing is too late."""
        if undo is None or run.saga.pivoted or self._is_ours(run):
            return
        environment = self._environment
        until = environment.clock.boot() + PATIENCE * environment.options.lease
        with self._lock:
            self._lost[run.saga.id] = (run, undo, until)

    def _is_ours(self, run: Run[Any, Any]) -> bool:
        """Whether nobody acquired the saga: only the answer to a write was lost, and the journal says how to continue.

        One that is not in the journal never began: nobody will end it.
        """
        try:
            found = self._environment.journal.get(run.saga.id)
        except errors.DatabaseFailed:
            return False
        except errors.NotFound:
            return True
        return bool(found.epoch == run.saga.epoch)

    def look(self, do: Callable[[Callable[[], None]], None]) -> None:
        """Passes to ``do`` the undo of each lost saga that has ended. One statement; none if no saga was lost."""
        with self._lock:
            lost = dict(self._lost)
        if not lost:
            return
        states = self._environment.journal.states(lost.keys())
        now = self._environment.clock.boot()
        for saga_id, (run, undo, until) in lost.items():
            state = states.get(saga_id)
            if state in ENDED:
                do(partial(self._end, run, undo))
            elif state is None or now >= until:
                if state is not None:
                    LOG.warning(
                        "Saga %s was lost and did not end; an audit shows whether something is orphaned", saga_id
                    )
                self._discard(saga_id)

    def _end(self, run: Run[Any, Any], undo: Undo) -> None:
        run.is_over = True
        try:
            # Hosts that have seen the last owner's orders refuse those of an earlier epoch.
            run.saga.epoch = self._environment.journal.get(run.saga.id).epoch
            undo(run)
        except errors.CausewayError as failure:
            LOG.warning(
                "Saga %s: what came too late is still there: %s %s", run.saga.id, failure.message, failure.details
            )
        except Exception:
            # The boundary of a worker's thread.
            LOG.exception("Saga %s: what came too late is still there", run.saga.id)
        finally:
            self._discard(run.saga.id)

    def _discard(self, saga_id: str) -> None:
        with self._lock:
            self._lost.pop(saga_id, None)
