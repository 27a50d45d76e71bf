"""What hosts report of transfers: answered at once, and written down together.

However many transfers are under way, the API database is written to at most twice a second, `MOST_ROWS` rows in the mean; the
more there are, the more seldom each is written. What was not written when the process dies is lost: it is only shown, and hosts
report again. The outcome of a transfer comes with its order, not from here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial

import sqlalchemy as sa

from causeway import errors
from causeway.conductor.cells.batches import Batches
from causeway.model.outcomes import MoveToken
from causeway.store.api import drains, ordered_moves
from causeway.store.api.ordered_moves import Report
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

# Seconds from one write to the next.
LEAST_PAUSE = 0.5
# Rows written in a second, in the mean.
MOST_ROWS = 200


def _later(pause: float, work: Callable[[], None]) -> None:
    timer = threading.Timer(pause, work)
    timer.daemon = True
    timer.start()


class Transfers:
    """``now``: a clock in seconds; ``later``: has something done in so many seconds."""

    def __init__(
        self,
        api: Database,
        *,
        now: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] = _later,
    ) -> None:
        self._api = api
        self._now = now
        self._later = later
        self._moves = Batches(partial(ordered_moves.ordered, api))
        self._rates = Batches(partial(drains.rates_of, api))
        self._lock = threading.Lock()
        # move -> what is not written yet
        self._reports: dict[str, Report] = {}
        self._is_writing = False
        self._not_before = now()

    def report(self, token: MoveToken, done: int, total: int, counters: dict[str, int] | None = None) -> str:
        """Notes how far the transfer of the step that runs has come; nothing, if it has ended, or is another owner's by now.

        Returns the server's uuid. Raises Cancelled, StateChanged (it is to be deleted) or TakenOver if nobody wants the
        transfer any more; DatabaseFailed if that is unknown.
        """
        move = ordered_moves.wanted(self._moves.get(token.move_id), token)
        at_hand = ordered_moves.attempt_of(move, token)
        if at_hand is not None:
            self._note(Report(token, at_hand, done, total, counters))
        return str(move.instance_uuid)

    def rate_of(self, token: MoveToken) -> float | None:
        """Bytes a second that a transfer may have now: its share of what its drain may; None: as fast as it goes."""
        return self._rates.get(token.move_id)

    def _note(self, report: Report) -> None:
        with self._lock:
            self._reports[report.token.move_id] = report
            if self._is_writing:
                return
            self._is_writing = True
            pause = self._not_before - self._now()
        if pause > 0:
            self._later(pause, self._write)
        else:
            self._write()

    def _write(self) -> None:
        with self._lock:
            reports, self._reports = list(self._reports.values()), {}
        try:
            ordered_moves.write(self._api, reports)
        except (errors.DatabaseFailed, sa.exc.IntegrityError) as failure:
            # Nobody's transfer fails because it can't be shown how far it has come.
            LOG.warning("How far %d transfers have come was not written: %s", len(reports), failure)
        finally:
            pause = max(LEAST_PAUSE, len(reports) / MOST_ROWS)
            with self._lock:
                self._not_before = self._now() + pause
                more = self._is_writing = bool(self._reports)
            if more:
                self._later(pause, self._write)
