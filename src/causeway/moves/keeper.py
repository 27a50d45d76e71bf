"""Keeps moves going: runs those that are asked for, renews their leases, and takes over those that were abandoned.

Any number of conductors share the moves without a leader: whoever gets the lease in the journal has the move.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from causeway import errors, metrics
from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext
from causeway.faults import injector
from causeway.model.moves import MOVE_ENDED, Move, MoveState
from causeway.moves.engine import Engine
from causeway.moves.requests import drop_if_refused
from causeway.store.api import journal
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)


class Keeper:
    """The moves in a conductor's hands. ``ended`` is called with each move that came to its end here."""

    def __init__(
        self, services: ConductorServices, engine: Engine, ended: Callable[[RequestContext, Move], None]
    ) -> None:
        self._services = services
        self._engine = engine
        self._ended = ended
        self._lease: float = services.conf.moves.lease
        self._lock = threading.Lock()
        self._in_hand: set[str] = set()
        self._pool = ThreadPoolExecutor(services.conf.moves.workers, thread_name_prefix="moves")
        self._thread = threading.Thread(target=self._keep, name="move-keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Waits for the steps under way; their moves are let go and may be taken by others at once.

        ``services.stopping`` must have been set.
        """
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._thread.is_alive():
            self._thread.join()

    def submit(self, context: RequestContext, move_id: str) -> None:
        """Runs a move as soon as a worker is free. In hand already: nothing happens."""
        with self._lock:
            if move_id in self._in_hand or self._services.stopping.is_set():
                return
            self._in_hand.add(move_id)
        self._pool.submit(self._run, context, move_id)

    def _run(self, context: RequestContext, move_id: str) -> None:
        # Log lines of this thread belong to the request from here on.
        context.update_store()
        try:
            with injector.scope(host=self._services.host, move_id=move_id):
                move = self._engine.run(context, move_id)
        except errors.CausewayError as failure:
            LOG.warning("Move %s is not worked on here any more: %s %s", move_id, failure.message, failure.details)
            return
        except Exception:
            # The boundary of the thread: nobody else would hear of it. The lease runs out, and the move is taken up again.
            LOG.exception("Move %s was left in the middle", move_id)
            return
        finally:
            with self._lock:
                self._in_hand.discard(move_id)
        if move is not None and move.state in MOVE_ENDED:
            LOG.info("Move %s of server %s (%s): %s", move_id, move.instance_uuid, move.recipe, move.state)
            _count(move)
            self._ended(context, move)

    def _keep(self) -> None:
        while not self._services.stopping.wait(self._lease / 3):
            try:
                with self._lock:
                    in_hand = [move_id for move_id in self._in_hand if not injector.is_hanging(move_id)]
                journal.renew(self._services.api, self._services.host, in_hand, self._lease)
                self.take_over()
            except errors.CausewayError as failure:
                LOG.warning("The journal of moves can't be read: %s %s", failure.message, failure.details)

    def take_over(self) -> None:
        """Takes up every move that nobody works on, those of an earlier life of this conductor among them."""
        told_of = utcnow() - timedelta(seconds=self._lease)
        for move in journal.abandoned(self._services.api, self._services.host, told_of):
            refused = move.state is MoveState.REQUESTED and drop_if_refused(
                self._services.api, self._services.cells, move
            )
            if refused:
                self._ended(context_of(move), move)
            else:
                self.submit(context_of(move), move.id)


def _count(move: Move) -> None:
    metrics.MOVES_ENDED.labels(move.recipe, move.state).inc()
    if move.started_at is not None and move.ended_at is not None:
        seconds = (move.ended_at - move.started_at).total_seconds()
        metrics.MOVE_SECONDS.labels(move.recipe, move.state).observe(seconds)


def context_of(move: Move) -> RequestContext:
    """The request that asked for a move, with the system's own credentials: the user's token may have expired."""
    return RequestContext(
        request_id=move.request_id,
        user_id=move.user_id,
        project_id=move.project_id,
        is_admin=True,
        roles=["admin"],
        overwrite=False,
    )
