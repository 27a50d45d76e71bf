"""Finds the database of a cell, and asks all cells at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Generic, TypeVar

from causeway import errors
from causeway.model.host import CellMapping
from causeway.store.api import cells as cell_records
from causeway.store.api import mappings
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

T = TypeVar("T")

# Seconds after which a cell that does not answer counts as down (as in the field).
CELL_TIMEOUT = 60


@dataclass
class Answers(Generic[T]):
    """What the cells said: by cell uuid; ``down`` are those that failed or did not answer in time."""

    by_cell: dict[str, T]
    down: list[CellMapping]


class Cells:
    """The cells of the cloud with their databases. Mappings are cached; `refresh` reads them again."""

    def __init__(self, api: Database, *, threads: int = 16, timeout: float = CELL_TIMEOUT) -> None:
        self.api = api
        self.timeout = timeout
        self._lock = threading.Lock()
        self._mappings: dict[str, CellMapping] = {}
        self._databases: dict[tuple[str, str], Database] = {}
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="cells")

    def refresh(self) -> None:
        found = {cell.uuid: cell for cell in cell_records.list_cells(self.api)}
        with self._lock:
            self._mappings = found

    def mappings(self, *, cell0: bool = True) -> list[CellMapping]:
        """All cells in the order in which they were made."""
        if not self._mappings:
            self.refresh()
        return [cell for cell in self._mappings.values() if cell0 or not cell.is_cell0]

    def mapping(self, cell_uuid: str) -> CellMapping:
        """Raises NotFound."""
        if cell_uuid not in self._mappings:
            self.refresh()
        try:
            return self._mappings[cell_uuid]
        except KeyError:
            raise errors.NotFound(f"Cell {cell_uuid} could not be found.") from None

    def database(self, cell_uuid: str) -> Database:
        """The database of a cell; raises NotFound if there is no such cell."""
        cell = self.mapping(cell_uuid)
        key = (cell.uuid, cell.database_connection)
        with self._lock:
            if key not in self._databases:
                self._databases[key] = Database(cell.database_connection, cell.name)
            return self._databases[key]

    def of_server(self, uuid: str) -> tuple[CellMapping, Database]:
        """The cell that a server lives in; raises ServerNotFound, also while it has no cell yet."""
        mapping = mappings.get(self.api, uuid)
        if mapping.cell_uuid is None:
            raise errors.ServerNotFound(uuid)
        return self.mapping(mapping.cell_uuid), self.database(mapping.cell_uuid)

    def ask_all(self, question: Callable[[CellMapping, Database], T], *, cell0: bool = True) -> Answers[T]:
        """Puts a question to every cell at once; one that is down does not hold up the others' answers."""
        targets = self.mappings(cell0=cell0)
        answers: Answers[T] = Answers({}, [])
        futures: dict[str, Future[T]] = {
            cell.uuid: self._pool.submit(question, cell, self.database(cell.uuid)) for cell in targets
        }
        for cell in targets:
            try:
                answers.by_cell[cell.uuid] = futures[cell.uuid].result(self.timeout)
            except (errors.DatabaseFailed, FutureTimeoutError) as failure:
                LOG.warning("Cell %s does not answer: %s", cell.name, getattr(failure, "details", "time is up"))
                answers.down.append(cell)
        return answers

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            for database in self._databases.values():
                database.close()
            self._databases.clear()
