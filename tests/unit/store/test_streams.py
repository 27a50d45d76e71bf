"""Rows of many cells become one ordered stream, and few more of them are read than are taken."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.model.host import CellMapping
from causeway.store import streams
from causeway.store.cells import Answers
from causeway.store.conditions import Predicate
from causeway.store.listed import Listed
from causeway.store.server_rows import Key, ServerQuery, SortKey, after, key_of, sort_rows
from causeway.store.streams import SLACK, Batch, Streams


class ManyCells:
    """Cells in memory, one after the other. ``breaks``: cell -> the question that it does not answer any more."""

    def __init__(self, query: ServerQuery, rows: list[list[Listed]], breaks: dict[int, int] | None = None) -> None:
        self.query = query
        self.rows = {str(number): list(of_cell) for number, of_cell in enumerate(rows)}
        for of_cell in self.rows.values():
            sort_rows(query, of_cell)
        self.breaks = {str(number): at for number, at in (breaks or {}).items()}
        self.asked = dict.fromkeys(self.rows, 0)
        self.read_rows = 0

    def mappings(self) -> list[CellMapping]:
        return [CellMapping(number, f"cell{number}", "", "") for number in self.rows]

    def ask_all(self, question: Callable[[CellMapping, Any], Batch]) -> Answers[Batch]:
        return self.ask(self.rows, question)

    def ask(self, numbers: Iterable[str], question: Callable[[CellMapping, Any], Batch]) -> Answers[Batch]:
        answers: Answers[Batch] = Answers({}, [])
        for cell in self.mappings():
            if cell.uuid in set(numbers):
                self.asked[cell.uuid] += 1
                if self.breaks.get(cell.uuid) == self.asked[cell.uuid]:
                    answers.down.append(cell)
                else:
                    answers.by_cell[cell.uuid] = question(cell, None)
        return answers

    def read(self, number: str, _database: Any, end: Key | None, size: int) -> Batch:
        rows = [row for row in self.rows[number] if after(self.query, row, end)][:size]
        self.read_rows += len(rows)
        fitting = [row for row in rows if all(one.matches(row) for one in self.query.conditions)]
        return Batch(fitting, key_of(self.query, rows[-1]) if len(rows) == size else None)

    def streams(self, cursor: Key | None = None, others: list[Listed] | None = None) -> Streams:
        return Streams(self, self.query, cursor, self.read, others or [])  # type: ignore[arg-type]


def row(number: int, cell: str | None, **values: Any) -> Listed:
    return Listed({"uuid": str(uuids.UUID(int=number)), **values}, cell)


def by_name(limit: int = 1000) -> ServerQuery:
    return ServerQuery(None, limit, sort=(SortKey("display_name"),))


def names(rows: list[Listed]) -> list[str]:
    return [one.values["display_name"] for one in rows]


# (host, launch_index) of the rows of each cell
ROWS = st.lists(
    st.lists(st.tuples(st.sampled_from([None, "", "A", "b"]), st.integers(0, 3)), max_size=25), min_size=1, max_size=6
)


@settings(max_examples=300)
@given(
    cells=ROWS,
    others=st.lists(st.tuples(st.sampled_from([None, "A", "b"]), st.integers(0, 3)), max_size=5),
    directions=st.tuples(st.booleans(), st.booleans()),
    wanted=st.integers(1, 12),
    marked=st.none() | st.integers(0, 200),
    breaks=st.dictionaries(st.integers(0, 5), st.integers(1, 4), max_size=2),
    slack=st.integers(1, 4),
    picky=st.booleans(),
)
def test_merged_streams_are_all_rows_in_order(
    cells: list[list[tuple[str | None, int]]],
    others: list[tuple[str | None, int]],
    directions: tuple[bool, bool],
    wanted: int,
    marked: int | None,
    breaks: dict[int, int],
    slack: int,
    picky: bool,
) -> None:
    """Whatever the keys, their directions and the marker are; of a cell that breaks, what was taken before at most."""
    sort = (SortKey("host", descending=directions[0]), SortKey("launch_index", descending=directions[1]))
    odd = Predicate(lambda server: server.values["launch_index"] % 2 == 1, frozenset({"launch_index"}))
    query = ServerQuery(None, 1000, conditions=[odd] if picky else [], sort=sort)
    numbers = iter(range(1000))
    rows = [
        [row(next(numbers), str(cell), host=host, launch_index=index) for host, index in of_cell]
        for cell, of_cell in enumerate(cells)
    ]
    requests = [row(next(numbers), None, host=host, launch_index=index) for host, index in others]
    everything = [one for of_cell in [*rows, requests] for one in of_cell]
    sort_rows(query, everything)
    cursor = key_of(query, everything[marked % len(everything)]) if marked is not None and everything else None
    many = ManyCells(query, rows, breaks)
    fitting = [one for one in requests if query.matches(one) and after(query, one, cursor)]
    taken: list[Listed] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(streams, "SLACK", slack)
        patched.setattr(streams, "FEWEST_TO_LOOK_AT", slack)
        merged = many.streams(cursor, fitting)
        frontier: Key | None = cursor
        while True:
            batch, frontier = merged.take(wanted)
            assert frontier is None or len(batch) >= wanted
            assert frontier is None or not any(after(query, one, frontier) for one in batch)
            taken += batch
            if frontier is None:
                break
    expected = [one for one in everything if query.matches(one) and after(query, one, cursor)]
    answered = [one for one in expected if one.cell_uuid not in merged.down]
    assert [one for one in taken if one.cell_uuid not in merged.down] == answered
    assert [one for one in expected if one in taken] == taken
    assert set(merged.down) == {cell for cell, at in many.breaks.items() if many.asked.get(cell, 0) >= at}


@pytest.mark.parametrize("spread", ["evenly", "one cell has the page", "by chance"])
def test_a_page_of_1000_from_ten_cells_reads_few_more_rows(spread: str) -> None:
    numbers = range(10_000)
    homes: dict[str, Callable[[int], int]] = {
        "evenly": lambda number: number % 10,
        "one cell has the page": lambda number: number // 1000,
        "by chance": lambda number: uuids.uuid5(uuids.NAMESPACE_DNS, str(number)).int % 10,
    }
    rows: list[list[Listed]] = [[] for _cell in range(10)]
    for number in numbers:
        cell = homes[spread](number)
        rows[cell].append(row(number, str(cell), display_name=f"{number:05}"))
    many = ManyCells(by_name(), rows)
    taken, _frontier = many.streams().take(1001)
    assert names(taken)[:1001] == [f"{number:05}" for number in range(1001)]
    batch = 1001 // 10 + 1 + SLACK
    assert many.read_rows <= 1001 + 10 * batch
    # Two or three times, not a hundred.
    assert max(many.asked.values()) <= 6
    assert sum(many.asked.values()) <= 40


def test_nobody_is_asked_for_more_than_a_small_page_needs() -> None:
    rows = [
        [row(number, str(cell), display_name=f"{number}") for number in range(cell, 1000, 10)] for cell in range(10)
    ]
    many = ManyCells(by_name(), rows)
    many.streams().take(11)
    assert many.read_rows <= 11 + 10 * (2 + SLACK)


def test_a_further_take_continues_where_the_one_before_ended() -> None:
    rows = [
        [row(number, str(cell), display_name=f"{number:04}") for number in range(cell, 600, 3)] for cell in range(3)
    ]
    many = ManyCells(by_name(), rows)
    merged = many.streams()
    taken: list[Listed] = []
    frontier: Key | None = ()
    while frontier is not None:
        batch, frontier = merged.take(40)
        taken += batch
    assert names(taken) == [f"{number:04}" for number in range(600)]
    # Nothing was read twice.
    assert many.read_rows == 600
