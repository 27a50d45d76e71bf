"""The layout of tables that show everything at any width.

What is copied and searched for (ids, hosts, steps, states) is never broken, and sentences are folded between words. Reasons stand
under the table, each once with a number, if rows share one or if one is too long. Where even that is too wide, each row becomes a
block with a line for each column.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from rich.cells import cell_len

# A column of sentences is not narrower than this, or than its longest text.
_NARROWEST = 24


@dataclass(frozen=True)
class Column:
    """A column before the frame is drawn. ``is_folded``: it has sentences; ``is_reason``: its cells may stand under the table."""

    title: str
    cells: Sequence[str]
    is_folded: bool = False
    is_reason: bool = False

    @property
    def most(self) -> int:
        """The width at which nothing is folded."""
        return max(map(width_of, [self.title, *self.cells]))

    @property
    def least(self) -> int:
        """The width that it needs."""
        if not self.is_folded:
            return self.most
        words = chain([self.title], *(cell.split() for cell in self.cells))
        return max(min(self.most, _NARROWEST), max(map(width_of, words)))


@dataclass(frozen=True)
class Layout:
    """``widths``: of each column; None if each row is to be a block. ``under``: the lines under the table."""

    columns: list[Column]
    widths: list[int] | None
    under: list[str]


def arrange(columns: Sequence[Column], width: int) -> Layout:
    """``width``: of the whole table with its frame."""
    found, under = list(columns), list[str]()
    reasons = [column for column in columns if column.is_reason]
    if any(map(_is_shared_or_long, reasons)) or _needed(columns) > width:
        numbers = {text: number for number, text in enumerate(_distinct(reasons), 1)}
        under = [f"[{number}] {text}" for text, number in numbers.items()]
        marked = {id(column): [f"[{numbers[cell]}]" if cell else "" for cell in column.cells] for column in reasons}
        found = [replace(column, cells=marked.get(id(column), column.cells)) for column in columns]
    return Layout(found, _widths(found, width), under)


def columns_of(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    folded: Collection[str] = (),
    reasons: Collection[str] = (),
) -> list[Column]:
    """``folded`` and ``reasons``: titles of columns."""
    return [
        Column(title, [row[number] for row in rows], title in folded, title in reasons)
        for number, title in enumerate(titles)
    ]


def width_of(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _distinct(columns: Sequence[Column]) -> list[str]:
    return [text for text in dict.fromkeys(chain.from_iterable(column.cells for column in columns)) if text]


def _is_shared_or_long(column: Column) -> bool:
    some = [cell for cell in column.cells if cell]
    return len(set(some)) < len(some) or any("\n" in cell for cell in some)


def _needed(columns: Sequence[Column]) -> int:
    return sum(column.least for column in columns) + 3 * len(columns) + 1


def _widths(columns: Sequence[Column], width: int) -> list[int] | None:
    spare = width - _needed(columns)
    if spare < 0:
        return None
    found = [column.least for column in columns]
    wanting = sorted((column.most - column.least, number) for number, column in enumerate(columns))
    for place, (missing, number) in enumerate(wanting):
        more = min(missing, spare // (len(wanting) - place))
        found[number] += more
        spare -= more
    return found
