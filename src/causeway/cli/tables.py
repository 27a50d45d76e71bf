"""Prints tables that show everything at any width (`causeway.openstack_plugin.layout`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from causeway.openstack_plugin.layout import arrange, columns_of

# What another program reads has no width.
_OF_A_PIPE = 10_000


def console() -> Console:
    """Standard output: as wide as the terminal, or COLUMNS; for another program, lines that are not broken."""
    has_width = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(width=None if has_width else _OF_A_PIPE, highlight=False)


def show(
    console: Console,
    titles: Sequence[str],
    rows: Sequence[Sequence[str | None]],
    *,
    folded: Collection[str] = (),
    reasons: str = "",
    title: str = "",
    lines: bool = False,
) -> None:
    """Prints a table. Cells are markup; those of the columns ``folded`` are sentences.

    ``reasons``: the title of the column with reasons. ``lines``: a line between rows.
    """
    texts = [[Text.from_markup(cell or "") for cell in row] for row in rows]
    plain = [[cell.plain for cell in row] for row in texts]
    layout = arrange(columns_of(titles, plain, folded=folded, reasons=[reasons]), console.width)
    for number, column in enumerate(layout.columns):
        if column.is_reason:
            for row, cell in zip(texts, column.cells, strict=True):
                row[number] = Text(cell)
    if title:
        console.print(Text.from_markup(title, style="bold"))
    if layout.widths is None:
        _show_blocks(console, titles, texts)
    else:
        table = Table(show_lines=lines)
        for name, width in zip(titles, layout.widths, strict=True):
            table.add_column(name, width=width, overflow="fold", no_wrap=False)
        for row in texts:
            table.add_row(*row)
        console.print(table)
    for note in layout.under:
        console.print(Text(note))


def _show_blocks(console: Console, titles: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
    for row in rows:
        block = Table.grid(padding=(0, 2, 0, 0))
        block.add_column(width=max(map(cell_len, titles)), style="bold")
        block.add_column(overflow="fold")
        for title, cell in zip(titles, row, strict=True):
            if cell.plain:
                block.add_row(title, cell)
        console.print(block)
        console.print()
