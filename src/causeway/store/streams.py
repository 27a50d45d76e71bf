"""The rows of all cells as one ordered stream, read in small batches, so that no cell is asked for a whole page.

Each cell returns its rows in the order of the query, a batch at a time. Everything is known up to the *frontier*: the end of
the batch that ends first. So the cell at the frontier is asked for more, and so is every cell with fewer rows left than its
share of the missing ones. A cell that has most of the page is asked repeatedly, for twice as many rows each time. A page of
1000 from ten cells reads some 1250 rows if they are spread evenly, and 2000 if one cell has them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from causeway.model.host import CellMapping
from causeway.store.cells import Answers, Cells
from causeway.store.database import Database
from causeway.store.listed import Listed
from causeway.store.server_rows import Key, ServerQuery, is_after, key_of, sort_rows

# Rows beyond a cell's share of the page: cells do not have equal shares, and copies of moves are discarded.
SLACK = 10
# The smallest batch if rows must be tested one by one, since it is unknown how many fit.
FEWEST_TO_LOOK_AT = 50


@dataclass
class Batch:
    """Rows behind a key that fit. ``end``: the key of the last row that was read; None if there are no more."""

    rows: list[Listed]
    end: Key | None


Read = Callable[[str, Database, Key | None, int], Batch]


@dataclass
class _Stream:
    """Rows that were read from a cell, up to ``end`` (None: to the end), and not taken yet."""

    rows: list[Listed] = field(default_factory=list)
    end: Key | None = None
    asked: int = 0


class Streams:
    """``read``: reads a batch (of a cell's uuid, its database, behind a key, a number of rows). ``others``: rows of no cell."""

    def __init__(self, cells: Cells, query: ServerQuery, cursor: Key | None, read: Read, others: list[Listed]) -> None:
        self._cells = cells
        self._query = query
        self._read = read
        # The key behind which rows begin: everything before was taken.
        self._cursor = cursor
        self._others = _Stream([*others])
        sort_rows(query, self._others.rows)
        self._by_cell: dict[str, _Stream] = {}
        self._begun = False
        self._looks = any(condition.clause() is None for condition in query.conditions)
        self.down: dict[str, CellMapping] = {}

    def take(self, wanted: int) -> tuple[list[Listed], Key | None]:
        """The next rows in order, at least ``wanted`` if there are as many, and the key up to which these are complete.

        The key is None if there are no more rows.
        """
        if not self._begun:
            self._begin(wanted)
        frontier = self._frontier()
        while frontier is not None and (ready := self._ready(frontier)) < wanted:
            self._read_more(frontier, wanted - ready)
            frontier = self._frontier()
        rows = [row for stream in self._streams() for row in stream.rows[: self._until(stream, frontier)]]
        sort_rows(self._query, rows)
        most = 2 * wanted + 100
        if len(rows) > most:
            del rows[most:]
            frontier = key_of(self._query, rows[-1])
        for stream in self._streams():
            del stream.rows[: self._until(stream, frontier)]
        return rows, frontier

    def _streams(self) -> list[_Stream]:
        return [self._others, *self._by_cell.values()]

    def _frontier(self) -> Key | None:
        """The key up to which the rows of all cells are known; None if to the end."""
        frontier: Key | None = None
        for stream in self._by_cell.values():
            if stream.end is not None and (frontier is None or is_after(self._query, frontier, stream.end)):
                frontier = stream.end
        return frontier

    def _ready(self, frontier: Key) -> int:
        return sum(self._until(stream, frontier) for stream in self._streams())

    def _until(self, stream: _Stream, frontier: Key | None) -> int:
        """The number of a stream's rows that are not behind the frontier."""
        if frontier is None:
            return len(stream.rows)
        low, high = 0, len(stream.rows)
        while low < high:
            middle = (low + high) // 2
            if is_after(self._query, key_of(self._query, stream.rows[middle]), frontier):
                high = middle
            else:
                low = middle + 1
        return low

    def _begin(self, wanted: int) -> None:
        self._begun = True
        share = -(-wanted // max(len(self._cells.mappings()), 1)) + SLACK
        size = self._size(share, wanted)
        self._add(self._cells.ask_all(lambda cell, database: self._read(cell.uuid, database, self._cursor, size)))

    def _read_more(self, frontier: Key, missing: int) -> None:
        unfinished = {uuid: stream for uuid, stream in self._by_cell.items() if stream.end is not None}
        share = -(-missing // len(unfinished)) + SLACK
        sizes: dict[str, int] = {}
        for uuid, stream in unfinished.items():
            lacking = share - (len(stream.rows) - self._until(stream, frontier))
            if lacking > 0:
                sizes[uuid] = self._size(lacking << (stream.asked - 1), missing)
        self._add(
            self._cells.ask(
                sizes,
                lambda cell, database: self._read(cell.uuid, database, unfinished[cell.uuid].end, sizes[cell.uuid]),
            )
        )

    def _size(self, rows: int, missing: int) -> int:
        """The size of a batch: at most the number of missing rows, or twice that if not every row fits."""
        if self._looks:
            return max(min(rows, 2 * missing), FEWEST_TO_LOOK_AT)
        return min(rows, missing + SLACK)

    def _add(self, answers: Answers[Batch]) -> None:
        for uuid, batch in answers.by_cell.items():
            stream = self._by_cell.setdefault(uuid, _Stream())
            stream.rows += batch.rows
            stream.end = batch.end
            stream.asked += 1
        for cell in answers.down:
            self.down[cell.uuid] = cell
            # Its earlier rows are discarded too: servers of cells that are down are listed in another way.
            self._by_cell.pop(cell.uuid, None)
