"""The progress of transfers that hosts report. Each report is answered at once; many of them are written together.

However many transfers are running, the API database gets at most two writes a second, with `MOST_ROWS` rows a second on average.
So the more transfers there are, the less often the progress of each is written. If the process dies, unwritten progress is lost.
That does no harm, because progress is only shown to users, and hosts report again. The outcome of a transfer is not reported like
this: it is in the answer to the order.
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
from causeway.model.outcomes import OperationToken
from causeway.store.api import drains, ordered_operations
from causeway.store.api.ordered_operations import Report
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

# The least number of seconds from one write to the next.
LEAST_PAUSE = 0.5
# Rows written in a second, on average.
MOST_ROWS = 200


def _later(pause: float, work: Callable[[], None]) -> None:
    timer = threading.Timer(pause, work)
    timer.daemon = True
    timer.start()


class Transfers:
    """Takes reports of transfers. ``now``: a clock in seconds. ``later``: calls a function after so many seconds."""

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
        self._moves = Batches(partial(ordered_operations.ordered, api))
        self._rates = Batches(partial(drains.rates_of, api))
        self._lock = threading.Lock()
        # move -> its last report, if that is not written yet
        self._reports: dict[str, Report] = {}
        self._is_writing = False
        self._not_before = now()

    def report(self, token: OperationToken, done: int, total: int, counters: dict[str, int] | None = None) -> str:
        """Notes the progress of the transfer in the running step, unless the step has ended or has another owner by now.

        Returns the server's uuid. Raises Cancelled, StateChanged (the server is being deleted) or TakenOver if the transfer is no
        longer wanted; DatabaseFailed if that is unknown.
        """
        operation = ordered_operations.wanted(self._moves.get(token.operation_id), token)
        at_hand = ordered_operations.attempt_of(operation, token)
        if at_hand is not None:
            self._note(Report(token, at_hand, done, total, counters))
        return str(operation.instance_uuid)

    def rate_of(self, token: OperationToken) -> float | None:
        """Returns how many bytes a second a transfer may use now: its share of its drain's rate; None for no limit."""
        return self._rates.get(token.operation_id)

    def _note(self, report: Report) -> None:
        with self._lock:
            self._reports[report.token.operation_id] = report
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
            ordered_operations.write(self._api, reports)
        except (errors.DatabaseFailed, sa.exc.IntegrityError) as failure:
            # A transfer must not fail because its progress can't be written.
            LOG.warning("The progress of %d transfers was not written: %s", len(reports), failure)
        finally:
            pause = max(LEAST_PAUSE, len(reports) / MOST_ROWS)
            with self._lock:
                self._not_before = self._now() + pause
                more = self._is_writing = bool(self._reports)
            if more:
                self._later(pause, self._write)
