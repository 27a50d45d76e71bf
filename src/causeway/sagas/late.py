"""Undoes the last call of a process that had lost its saga without noticing.

Before a process changes anything, it checks whether it still owns the saga (`Run.check_lease`). But its machine may be suspended
between that check and the next call to another service, and those services know nothing about epochs. So one call can take effect
after another process has undone the saga, or has made the same call. When the slow process finds that its saga was taken over, or
can't find out because the journal does not answer, it waits for the end of the saga. Then its recipe undoes what came too late
(`Recipe.undo_late`). No worker waits for this: the keeper checks from time to time whether the saga has ended.
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

# The number of leases for which this process waits for the end of the saga. After that, an audit has to find what is orphaned.
PATIENCE = 10

Undo = Callable[[Any], None]


class Late:
    """The sagas that other processes took over from this process and that have not ended yet."""

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
        """Adds a saga that another process may have taken over while this one worked on it, unless it is behind its pivot.

        ``undo``: undoes what this process did too late; None if the recipe has nothing to undo.
        """
        if undo is None or run.saga.pivoted or self._still_owns(run):
            return
        environment = self._environment
        until = environment.clock.boot() + PATIENCE * environment.options.lease
        with self._lock:
            self._lost[run.saga.id] = (run, undo, until)

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
        now = self._environment.clock.boot()
        for saga_id, (run, undo, until) in lost.items():
            state = states.get(saga_id)
            if state in ENDED:
                do(partial(self._end, run, undo))
            elif state is None or now >= until:
                if state is not None:
                    LOG.warning(
                        "Saga %s was lost and did not end; run an audit to see whether something is orphaned", saga_id
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
                "Saga %s: what came too late could not be undone, run an audit: %s %s",
                run.saga.id,
                failure.message,
                failure.details,
            )
        except Exception:
            # The boundary of a worker's thread.
            LOG.exception("Saga %s: what came too late could not be undone, run an audit", run.saga.id)
        finally:
            self._discard(run.saga.id)

    def _discard(self, saga_id: str) -> None:
        with self._lock:
            self._lost.pop(saga_id, None)
