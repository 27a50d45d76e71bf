"""The rows of all cells as one ordered stream, read in small batches: no cell is asked for a whole page.

Each cell gives its rows in the order of the query, a batch at a time. All is known up to the *frontier*: the end of the batch
that ends first. So who stands at the frontier is asked for more, and so is who has less left than its share of what is missing;
whoever has enough is not. A cell that is asked again and again, for the page is mostly its own, gives twice as much each time. A
page of 1000 from ten cells costs some 1250 rows if they are spread evenly, and 2000 if one cell has them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from causeway.model.host import CellMapping
from causeway.store.cells import Answers, Cells
from causeway.store.database import Database
from causeway.store.listed import Listed
from causeway.store.server_rows import Key, ServerQuery, is_after, key_of, sort_rows

# Rows beyond a cell's share of the page: cells do not have equal parts of it, and copies of moves will be thrown away.
SLACK = 10
# Where rows must be looked at one by one it is not known how many of them fit.
FEWEST_TO_LOOK_AT = 50


@dataclass
class Batch:
    """Rows behind a key that fit; ``end``: the key of the last one that was read, None if there is no further one."""

    rows: list[Listed]
    end: Key | None


Read = Callable[[str, Database, Key | None, int], Batch]


@dataclass
class _Stream:
    """What was read of a cell, up to ``end`` (None: everything), and not taken yet."""

    rows: list[Listed] = field(default_factory=list)
    end: Key | None = None
    asked: int = 0


class Streams:
    """``read`` reads a batch of a cell (its uuid, its database, behind which key, how many); ``others``: rows of no cell."""

    def __init__(self, cells: Cells, query: ServerQuery, cursor: Key | None, read: Read, others: list[Listed]) -> None:
        self._cells = cells
        self._query = query
        self._read = read
        # Where rows begin; all up to there was taken.
        self._cursor = cursor
        self._others = _Stream([*others])
        sort_rows(query, self._others.rows)
        self._by_cell: dict[str, _Stream] = {}
        self._begun = False
        self._looks = any(condition.clause() is None for condition in query.conditions)
        self.down: dict[str, CellMapping] = {}

    def take(self, wanted: int) -> tuple[list[Listed], Key | None]:
        """The next rows in order, ``wanted`` of them at least if there are as many, and the key up to which these are all.

        The key is None when there is no further row.
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
        """Up to where the rows of all cells are known; None: to the end."""
        frontier: Key | None = None
        for stream in self._by_cell.values():
            if stream.end is not None and (frontier is None or is_after(self._query, frontier, stream.end)):
                frontier = stream.end
        return frontier

    def _ready(self, frontier: Key) -> int:
        return sum(self._until(stream, frontier) for stream in self._streams())

    def _until(self, stream: _Stream, frontier: Key | None) -> int:
        """How many of a stream's rows are not behind the frontier."""
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
        """Of a batch: never more than all that is missing, or twice that where not every row fits."""
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
            # What it said before is left out, too: its servers are listed in another way.
            self._by_cell.pop(cell.uuid, None)
