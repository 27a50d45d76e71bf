"""Keeps moves going: runs those that are asked for, renews their leases, and takes over those that were abandoned.

Any number of conductors share the moves without a leader: whoever gets the lease in the journal has the move.

Leases are renewed by a thread that does nothing else, on a connection that nobody else uses. Looking for abandoned moves
never waits for a cell: what has to be asked there of a move is asked on a thread of that cell.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import ceil

from causeway import errors, metrics
from causeway.conductor.by_cell import ByCell
from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext
from causeway.faults import injector
from causeway.model.moves import MOVE_ENDED, MOVE_NOT_ACCEPTED, Move, MoveState
from causeway.moves.engine import Engine
from causeway.moves.requests import drop_if_refused
from causeway.moves.run import boot_clock
from causeway.moves.versions import knowledge
from causeway.store.api import journal
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


class Keeper:
    """The moves in a conductor's hands.

    ``ended`` is called with each move that came to its end here; ``let_go`` with each that others are to go on with at once,
    because this conductor stops. If they can't be told they find it by themselves, within a third of a lease.
    """

    def __init__(
        self,
        services: ConductorServices,
        engine: Engine,
        ended: Callable[[RequestContext, Move], None],
        let_go: Callable[..., None],
    ) -> None:
        self._services = services
        self._engine = engine
        self._ended = ended
        self._let_go = let_go
        self._lease: float = services.conf.moves.lease
        self._lock = threading.Lock()
        self._in_hand: dict[str, RequestContext] = {}
        self._pool = ThreadPoolExecutor(services.conf.moves.workers, thread_name_prefix="moves")
        self._blind_until = 0.0
        self._checks = ByCell("Looking at the requests for moves")
        self._renewing = threading.Event()
        # Of its own: nobody else's statements, locks or full pool hold up a renewal, and one that hangs is given up in time.
        url = services.api.url.render_as_string(hide_password=False)
        self._leases = Database(url, services.api.name, answer_timeout=max(1, ceil(self._lease / 3)))
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for name, work in (("move-leases", self._renew), ("move-keeper", self._look))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether moves are in hand, or lost ones are waited for."""
        with self._lock:
            return bool(self._in_hand) or self._engine.late.is_waiting

    def stop(self) -> None:
        """Waits for the steps under way; their moves are let go, and others are told to take them.

        ``services.stopping`` must have been set.
        """
        with self._lock:
            # From here on nobody submits to it.
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool.shutdown(wait=True)
        with self._lock:
            never_begun, self._in_hand = self._in_hand, {}
        for move_id, context in never_begun.items():
            self._hand_over(context, move_id)
        self._renewing.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self._leases.close()

    def submit(self, context: RequestContext, move_id: str) -> None:
        """Runs a move as soon as a worker is free. In hand already: nothing happens. Others run it if this conductor stops."""
        if not self._take(context, move_id) and self._services.stopping.is_set():
            self._hand_over(context, move_id)

    def go_on(self, context: RequestContext, move_id: str) -> None:
        """Like `submit`, for what all conductors are told: nobody is told again."""
        self._take(context, move_id)

    def _take(self, context: RequestContext, move_id: str) -> bool:
        with self._lock:
            if move_id in self._in_hand or self._services.stopping.is_set():
                return False
            self._in_hand[move_id] = context
            self._pool.submit(self._run, context, move_id)
            return True

    def _hand_over(self, context: RequestContext, move_id: str) -> None:
        try:
            self._let_go(context, move_id=move_id)
        except errors.CausewayError as failure:
            LOG.warning("Nobody could be told to go on with move %s: %s", move_id, failure.message)

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
                self._in_hand.pop(move_id, None)
        if move is None:
            return
        if move.state not in MOVE_ENDED and move.state is not MoveState.STUCK and self._services.stopping.is_set():
            LOG.info("Move %s of server %s is handed over", move_id, move.instance_uuid)
            self._hand_over(context, move_id)
        elif move.state in MOVE_ENDED:
            LOG.info("Move %s of server %s (%s): %s", move_id, move.instance_uuid, move.recipe, move.state)
            _count(move)
            try:
                self._ended(context, move)
            except errors.CausewayError as failure:
                # Who waits for this end is in the journal or has a task in its cell: there it is found later.
                LOG.warning("What follows move %s comes later: %s %s", move_id, failure.message, failure.details)

    def _renew(self) -> None:
        # Also while the conductor stops: steps under way are waited for.
        while not self._renewing.wait(self._lease / 3):
            at_work = [move_id for move_id in self._services.life.at_work() if not injector.is_hanging(move_id)]
            with self._seeing("Leases can't be renewed"):
                journal.renew(self._leases, self._services.life.owner, at_work, self._lease)

    def _look(self) -> None:
        while not self._services.stopping.wait(self._lease / 3):
            with self._seeing("The journal of moves can't be read"):
                self.take_over()
                self._engine.late.look(self._in_pool)

    @contextmanager
    def _seeing(self, trouble: str) -> Iterator[None]:
        """The boundary of the threads: without them no lease would be renewed, no move taken over any more."""
        try:
            yield
        except Exception as failure:
            self._blind_until = boot_clock() + self._lease
            if isinstance(failure, errors.CausewayError):
                LOG.warning("%s: %s %s", trouble, failure.message, failure.details)
            else:
                LOG.exception("%s", trouble)

    def _in_pool(self, work: Callable[[], None]) -> None:
        with self._lock:
            if not self._services.stopping.is_set():
                self._pool.submit(work)

    def take_over(self) -> None:
        """Takes up every move that nobody works on, those of earlier lives of this conductor among them.

        While the journal could not be reached nobody could renew a lease: its owner has the time of a lease to do so.
        """
        life = self._services.life
        was_blind = boot_clock() < self._blind_until
        with self._lock:
            in_hand = self._in_hand.keys() | life.at_work()
        proposed: dict[Hashable, list[Move]] = defaultdict(list)
        for move in journal.abandoned(
            self._services.api, life.mine, self._lease, in_hand=in_hand, knowledge=knowledge()
        ):
            if was_blind and move.owner is not None and move.owner not in life.mine:
                continue
            if move.state in MOVE_NOT_ACCEPTED:
                proposed[_cells_of(move)].append(move)
            else:
                self.submit(context_of(move), move.id)
        for cells, moves in proposed.items():
            self._checks.start(cells, partial(self._check, moves))

    def _check(self, moves: list[Move]) -> None:
        """Takes requests out of the journal that their API has not accepted within a lease; runs those that it just has."""
        for move in moves:
            if self._services.stopping.is_set():
                return
            try:
                refused = drop_if_refused(self._services.api, self._services.cells, move)
                if refused:
                    self._ended(context_of(move), move)
                else:
                    self.submit(context_of(move), move.id)
            except errors.DatabaseFailed:
                # The others' would fail alike, each after its time: they are looked at again.
                raise
            except errors.CausewayError as failure:
                LOG.warning("Move %s was not taken up: %s %s", move.id, failure.message, failure.details)


def _cells_of(move: Move) -> Hashable:
    """The cells in which a request may have left something."""
    chosen = move.data.get("selection") or {}
    return move.data.get("source_cell"), chosen.get("cell_uuid")


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
