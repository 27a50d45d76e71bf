"""Limits the connections of a process to the databases of all cells together, however many cells there are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import ConnectionPoolEntry, Pool

# The default limit of a process: a connection to each of a hundred cells, and cell0, can stay open.
MOST = 128
# Seconds after which an unused connection is closed.
IDLE_SECONDS = 60.0


@dataclass(eq=False)
class _Idle:
    pool: BudgetPool
    entry: ConnectionPoolEntry
    since: float


class ConnectionBudget:
    """``most`` connections to databases of cells are open at a time, half of them to one database at most.

    So a database that does not answer leaves half of them to the others. When the limit is reached, a caller that needs another
    one closes the connection that has been idle for longest, to any database. If none is idle, it waits.
    """

    def __init__(self, most: int = MOST, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.most_of_one = max(1, most // 2)
        self._clock = clock
        self._changed = threading.Condition()
        # The connection that was returned last is at the end.
        self._idle: list[_Idle] = []
        self._open: dict[BudgetPool, int] = {}

    @property
    def open(self) -> int:
        """The number of connections that are open or being opened."""
        return sum(list(self._open.values()))

    def take(self, pool: BudgetPool, timeout: float) -> ConnectionPoolEntry:
        """An idle connection, or a new one. Raises SQLAlchemy's TimeoutError if there is none in time."""
        closed = None
        with self._changed:
            if not self._changed.wait_for(lambda: self._can_have_one(pool), timeout):
                raise sa.exc.TimeoutError(
                    f"no connection to it was free for {timeout:g} s: this process may have {self.most} to the databases of"
                    f" cells ([api_database] cell_connections), {self.most_of_one} of them to one; it has {self.open} now,"
                    f" {self._open.get(pool, 0)} of them to this one"
                )
            own = self._last_idle(pool)
            if own is not None:
                self._idle.remove(own)
                return own.entry
            if self.open >= self.most:
                closed = self._idle.pop(0)
                self._count(closed.pool, -1)
            self._count(pool, 1)
        if closed is not None:
            closed.entry.close()
        try:
            return pool.connect_anew()
        except BaseException:
            self._count(pool, -1)
            raise

    def return_connection(self, pool: BudgetPool, entry: ConnectionPoolEntry) -> None:
        if pool.is_closed:
            entry.close()
            self._count(pool, -1)
            return
        with self._changed:
            self._idle.append(_Idle(pool, entry, self._clock()))
            self._changed.notify_all()

    def close_unused(self) -> None:
        """Closes connections that were not used for `IDLE_SECONDS`."""
        before = self._clock() - IDLE_SECONDS
        self._close(lambda one: one.since < before)

    def close_all_of(self, pool: BudgetPool) -> None:
        """Closes the idle connections of one database."""
        self._close(lambda one: one.pool is pool)

    def _close(self, condition: Callable[[_Idle], bool]) -> None:
        with self._changed:
            closed = [one for one in self._idle if condition(one)]
            self._idle = [one for one in self._idle if one not in closed]
        for one in closed:
            one.entry.close()
            self._count(one.pool, -1)

    def _can_have_one(self, pool: BudgetPool) -> bool:
        if self._last_idle(pool) is not None:
            return True
        has_room = self.open < self.most or bool(self._idle)
        return has_room and self._open.get(pool, 0) < self.most_of_one

    def _last_idle(self, pool: BudgetPool) -> _Idle | None:
        return next((one for one in reversed(self._idle) if one.pool is pool), None)

    def _count(self, pool: BudgetPool, more: int) -> None:
        with self._changed:
            self._open[pool] = self._open.get(pool, 0) + more
            if not self._open[pool]:
                del self._open[pool]
            self._changed.notify_all()


class BudgetPool(Pool):
    """The connections of one database, out of a budget that it shares with others."""

    def __init__(self, creator: Any, budget: ConnectionBudget, timeout: float, **options: Any) -> None:
        super().__init__(creator, **options)
        self._budget, self._timeout = budget, timeout
        # Events of the first one are in what is dispatched.
        self._options = {name: value for name, value in options.items() if name not in ("events", "_dispatch")}
        self.is_closed = False

    def connect_anew(self) -> ConnectionPoolEntry:
        return self._create_connection()

    def status(self) -> str:
        return f"{self._budget.open} of {self._budget.most} connections to cells are open"

    def dispose(self) -> None:
        """Closes all connections; those in use when they are returned."""
        self.is_closed = True
        self._budget.close_all_of(self)

    def recreate(self) -> BudgetPool:
        return BudgetPool(self._creator, self._budget, self._timeout, **self._options, _dispatch=self.dispatch)

    # What SQLAlchemy calls; `test_connection_budget.py` fails when it calls something else.
    def _do_get(self) -> ConnectionPoolEntry:
        return self._budget.take(self, self._timeout)

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        self._budget.return_connection(self, record)
