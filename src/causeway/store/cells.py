"""Finds the database of a cell, and asks all cells at once.

Cells are added and deleted while services run, so the mappings are read again when they are some seconds old.

A cell that is down must not delay others. Only a limited number of questions is sent to a cell at a time (`askers`), so that a
cell that hangs does not use up the threads and connections of the others. A caller waits at most ``timeout`` seconds. While its
question still hangs, or just after one failed slowly, the cell counts as down at once for all callers.

Only a cell that can't be reached is down. So after a failure, whatever it is, the cell is pinged on a new connection: if it
answers, the failure is that of the question, and of who asked it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from causeway import errors
from causeway.model.host import CellMapping
from causeway.store.api import cells as cell_records
from causeway.store.api import mappings
from causeway.store.askers import Askers
from causeway.store.connections import ConnectionBudget
from causeway.store.database import Database, Observer

LOG = logging.getLogger(__name__)

T = TypeVar("T")

# Seconds after which a cell that does not answer counts as down (as in Nova).
CELL_TIMEOUT = 60.0
# Seconds after which the mappings are read again.
MAPPINGS_MAX_AGE = 10.0
# Questions to one cell at a time; to all together where there are few cells. Threads do not become more than that, or than two
# for each cell.
FEWEST_QUESTIONS, MOST_QUESTIONS, QUESTIONS = 2, 16, 64
# A failure that took so many seconds is not tried again at once, but after so many.
SLOW_FAILURE, PAUSE_AFTER_SLOW_FAILURE = 2.0, 10.0
# Seconds in which a cell must answer a ping after a question failed.
PING_TIMEOUT = 5.0


@dataclass
class Answers(Generic[T]):
    """The answers by cell uuid. ``down``: the cells that could not be reached."""

    by_cell: dict[str, T]
    down: list[CellMapping]


class Cells:
    """The cells of the cloud with their databases.

    ``api``: the API database of a cloud with a cell "gen1", and one "gen2" that is down.

    >>> cells = Cells(api)
    >>> [cell.name for cell in cells.mappings(cell0=False)]
    ['gen1', 'gen2']
    >>> gen1, gen2 = cells.mappings(cell0=False)
    >>> from causeway.store.cell import hosts
    >>> hosts.list_services(cells.database(gen1.uuid))
    []

    All cells are asked at once, and one that is down does not delay the answers of the others:

    >>> found = cells.ask_all(lambda cell, database: len(hosts.list_services(database)), cell0=False)
    >>> found.by_cell == {gen1.uuid: 0}, [cell.name for cell in found.down]
    (True, ['gen2'])
    >>> cells.close()
    """

    def __init__(
        self,
        api: Database,
        *,
        timeout: float = CELL_TIMEOUT,
        max_age: float = MAPPINGS_MAX_AGE,
        budget: ConnectionBudget | None = None,
    ) -> None:
        """``timeout`` and ``max_age`` (of the mappings) in seconds. ``budget``: of connections to all cells."""
        self.api = api
        self.timeout = timeout
        self.max_age = max_age
        self.budget = budget or ConnectionBudget()
        self._askers = Askers()
        self._lock = threading.Lock()
        self._mappings: dict[str, CellMapping] = {}
        self._read_at: float | None = None
        self._databases: dict[tuple[str, str], Database] = {}
        self._observer: Observer | None = None
        # cell -> a ping that it did not answer in time; cell -> when it may be asked again after a slow failure
        self._hanging: dict[str, Future[None]] = {}
        self._down_until: dict[str, float] = {}

    def refresh(self) -> None:
        with self._lock:
            self._read_at = time.monotonic()
        found = {cell.uuid: cell for cell in cell_records.list_cells(self.api)}
        with self._lock:
            self._mappings = found
            known = {(cell.uuid, cell.database_connection) for cell in found.values()}
            # Databases of cells that were deleted, or have another URL now. Their users still return their connections.
            gone = [self._databases.pop(key) for key in self._databases.keys() - known]
        for database in gone:
            database.close()
        self.budget.close_unused()

    def _refresh_if_old(self) -> None:
        read_at = self._read_at
        if read_at is None or not self._mappings or time.monotonic() - read_at > self.max_age:
            self.refresh()

    def mappings(self, *, cell0: bool = True) -> list[CellMapping]:
        """All cells in the order in which they were made."""
        self._refresh_if_old()
        return [cell for cell in self._mappings.values() if cell0 or not cell.is_cell0]

    def mapping(self, cell_uuid: str) -> CellMapping:
        """Raises NotFound."""
        self._refresh_if_old()
        if cell_uuid not in self._mappings:
            self.refresh()
        try:
            return self._mappings[cell_uuid]
        except KeyError:
            raise errors.NotFound(f"Cell {cell_uuid} could not be found.") from None

    def database(self, cell_uuid: str) -> Database:
        """The database of a cell. Raises NotFound if there is no such cell, DatabaseFailed if it hangs."""
        cell = self.mapping(cell_uuid)
        if self.is_down(cell_uuid):
            raise errors.DatabaseFailed(
                f"The database of {cell.name} does not answer; try again later.", details="it did not just now"
            )
        return self.open(cell)

    def open(self, cell: CellMapping) -> Database:
        """The database of a cell, whether it answers or not."""
        key = (cell.uuid, cell.database_connection)
        with self._lock:
            if key not in self._databases:
                self._databases[key] = Database(
                    cell.database_connection, cell.name, synchronous=self.api.synchronous, budget=self.budget
                )
                self._databases[key].observer = self._observer
            return self._databases[key]

    def observe(self, observer: Observer) -> None:
        """Makes this the observer of all cells' databases (`Database.observer`), also of those that are opened later."""
        with self._lock:
            self._observer = observer
            for database in self._databases.values():
                database.observer = observer

    def of_server(self, uuid: str) -> tuple[CellMapping, Database]:
        """The cell that a server lives in. Raises ServerNotFound, also while it has no cell yet."""
        mapping = mappings.get(self.api, uuid)
        if mapping.cell_uuid is None:
            raise errors.ServerNotFound(uuid)
        return self.mapping(mapping.cell_uuid), self.database(mapping.cell_uuid)

    def ask_all(
        self, question: Callable[[CellMapping, Database], T], *, cell0: bool = True, without_failed: bool = False
    ) -> Answers[T]:
        """Asks every cell at once. A cell that is down does not delay the others' answers.

        Raises QueryFailed if a cell can be reached and fails all the same. ``without_failed``: such a cell is in ``down``
        instead, of this answer only: for work that continues with the other cells.
        """
        return self._ask(self.mappings(cell0=cell0), question, without_failed)

    def ask(
        self,
        cell_uuids: Iterable[str],
        question: Callable[[CellMapping, Database], T],
        *,
        without_failed: bool = False,
    ) -> Answers[T]:
        """Asks some cells at once, as `ask_all`. Raises NotFound for an unknown cell, too."""
        return self._ask([self.mapping(uuid) for uuid in cell_uuids], question, without_failed)

    def _ask(
        self, targets: list[CellMapping], question: Callable[[CellMapping, Database], T], without_failed: bool
    ) -> Answers[T]:
        answers: Answers[T] = Answers({}, [])
        began = time.monotonic()
        futures: dict[str, Future[T]] = {
            cell.uuid: self._submit(cell, partial(question, cell, self.open(cell)))
            for cell in targets
            if not self.is_down(cell.uuid)
        }
        failures: list[tuple[CellMapping, Exception, Future[None], float]] = []
        for cell in targets:
            future = futures.get(cell.uuid)
            if future is None:
                answers.down.append(cell)
                continue
            try:
                answers.by_cell[cell.uuid] = future.result(max(0.0, began + self.timeout - time.monotonic()))
            except (errors.DatabaseFailed, FutureTimeoutError) as failure:
                future.cancel()
                failures.append((cell, failure, self._ping(cell), time.monotonic() - began))
        pinged = time.monotonic()
        for cell, cause, ping, seconds in failures:
            reason = getattr(cause, "details", "") or f"it needs more than {self.timeout:g} s"
            if not self._is_answered(cell, ping, pinged, seconds):
                LOG.warning("Cell %s does not answer: %s", cell.name, reason)
                answers.down.append(cell)
            elif without_failed:
                LOG.warning("Cell %s answers, but a question to it failed: %s", cell.name, reason)
                answers.down.append(cell)
            else:
                raise errors.QueryFailed(cell.name, details=reason) from cause
        return answers

    def answers(self, cell_uuid: str) -> bool:
        """Whether a cell's database answers now. Raises NotFound."""
        cell = self.mapping(cell_uuid)
        if self.is_down(cell_uuid):
            return False
        return self._is_answered(cell, self._ping(cell), time.monotonic(), 0.0)

    def _ping(self, cell: CellMapping) -> Future[None]:
        # A queue of its own: slow questions may hold all turns of the cell.
        return self._askers.submit(f"{cell.uuid} ping", self.open(cell).ping_anew, 1)

    def _is_answered(self, cell: CellMapping, ping: Future[None], began: float, seconds: float) -> bool:
        """Whether the ping is answered in time; if not, notes it. ``seconds``: those that the question before it took."""
        try:
            ping.result(max(0.0, began + PING_TIMEOUT - time.monotonic()))
        except (errors.DatabaseFailed, FutureTimeoutError):
            self._note_failure(cell.uuid, ping, seconds + time.monotonic() - began)
            return False
        return True

    def _submit(self, cell: CellMapping, question: Callable[[], T]) -> Future[T]:
        at_a_time = max(FEWEST_QUESTIONS, min(MOST_QUESTIONS, QUESTIONS // max(1, len(self._mappings))))
        return self._askers.submit(cell.uuid, question, at_a_time)

    def _note_failure(self, cell_uuid: str, ping: Future[None], seconds: float) -> None:
        with self._lock:
            if not ping.done():
                self._hanging[cell_uuid] = ping
            elif seconds > SLOW_FAILURE:
                self._down_until[cell_uuid] = time.monotonic() + PAUSE_AFTER_SLOW_FAILURE

    @property
    def any_down(self) -> bool:
        """Whether any cell did not answer just now."""
        return bool(self._hanging or self._down_until)

    def is_down(self, cell_uuid: str) -> bool:
        """Whether it is known without asking that a cell does not answer."""
        if not self.any_down:
            return False
        with self._lock:
            hanging = self._hanging.get(cell_uuid)
            if hanging is not None and not hanging.done():
                return True
            self._hanging.pop(cell_uuid, None)
            if self._down_until.get(cell_uuid, 0.0) > time.monotonic():
                return True
            self._down_until.pop(cell_uuid, None)
            return False

    def close(self) -> None:
        """Closes everything, without waiting for questions that hang."""
        with self._lock:
            is_hanging = any(not one.done() for one in self._hanging.values())
        self._askers.close(wait=not is_hanging)
        with self._lock:
            for database in self._databases.values():
                database.close()
            self._databases.clear()
