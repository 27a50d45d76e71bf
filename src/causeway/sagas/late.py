"""Undoes the last call of a process that had lost its saga without knowing.

A slow process (its machine was suspended, say) checks whether it still owns a saga before it changes anything
(`Run.check_lease`). But it may be suspended between that check and its next call to another service, and those services know no
epochs. So one call can take effect after another process has undone the saga, or has made the same call. A process that finds
that a saga was taken over, or can't find out because the journal does not answer, therefore waits for the saga's end and has its
recipe undo what came too late (`Recipe.undo_late`). This holds no worker: the keeper looks from time to time.
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

# For how many leases the end of the saga is awaited. After that it is left to an audit.
PATIENCE = 10

Undo = Callable[[Any], None]


class Late:
    """The sagas that other processes took over from this one, until they have ended."""

    def __init__(self, environment: Environment[Any]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        # saga -> (its run, how to undo what it did too late, until when to wait for its end)
        self._lost: dict[str, tuple[Run[Any, Any], Undo, float]] = {}

    @property
    def is_waiting(self) -> bool:
        with self._lock:
            return bool(self._lost)

    def add(self, run: Run[Any, Any], undo: Undo | None) -> None:
        """Notes a saga that may have been taken over while this process worked on it, unless it is behind its pivot."""
        if undo is None or run.saga.pivoted or self._is_ours(run):
            return
        environment = self._environment
        until = environment.clock.boot() + PATIENCE * environment.options.lease
        with self._lock:
            self._lost[run.saga.id] = (run, undo, until)

    def _is_ours(self, run: Run[Any, Any]) -> bool:
        """Whether no other process acquired the saga: only the answer to a write was lost, and the journal says how to continue.

        True also for a saga that is not in the journal: it never began, and will never end.
        """
        try:
            found = self._environment.journal.get(run.saga.id)
        except errors.DatabaseFailed:
            return False
        except errors.NotFound:
            return True
        return bool(found.epoch == run.saga.epoch)

    def look(self, do: Callable[[Callable[[], None]], None]) -> None:
        """Passes to ``do`` the undo of each lost saga that has ended. Makes one statement, or none if no saga was lost."""
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
            # Hosts that have seen the last owner's orders refuse orders of an earlier epoch.
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
