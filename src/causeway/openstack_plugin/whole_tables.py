"""The tables of lists: as the client's, but nothing in them is broken to fit a terminal (`causeway.openstack_plugin.layout`)."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TextIO

from cliff import utils
from cliff.columns import FormattableColumn
from cliff.formatters.table import TableFormatter
from osc_lib.command import command

from causeway.openstack_plugin.layout import Column, arrange, columns_of

_ANY = 10_000


class WholeTable(TableFormatter):
    """``folded`` and ``reasons``: titles of columns, as `columns_of` takes them."""

    def __init__(self, folded: Collection[str], reasons: Collection[str]) -> None:
        super().__init__()
        self._folded = folded
        self._reasons = reasons

    def emit_list(
        self,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        rows = [[_text(cell) for cell in row] for row in data]
        layout = arrange(
            columns_of(column_names, rows, folded=self._folded, reasons=self._reasons), _width(parsed_args)
        )
        if layout.widths is None:
            stdout.write(_blocks(layout.columns))
        else:
            folded = [
                [_fold(cell, width) for cell in column.cells]
                for column, width in zip(layout.columns, layout.widths, strict=True)
            ]
            super().emit_list(column_names, list(zip(*folded, strict=True)), stdout, parsed_args)
        stdout.writelines(f"{line}\n" for line in layout.under)

    @staticmethod
    def _assign_max_widths(*_table_and_widths: Any, **_more: Any) -> None:
        """Narrows no column: the layout has done that."""


class WholeLister(command.Lister):
    """A list whose columns ``folded`` have sentences, and ``reasons`` what may stand under the table."""

    folded: Collection[str] = ()
    reasons: Collection[str] = ()

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Iterable[Sequence[Any]]
    ) -> int:
        if parsed_args.formatter == "table":
            self.formatter = WholeTable(self.folded, self.reasons)
        return super().produce_output(parsed_args, column_names, data)


def _text(cell: Any) -> str:
    shown = cell.human_readable() if isinstance(cell, FormattableColumn) else cell
    return "" if shown is None else str(shown)


def _fold(text: str, width: int) -> str:
    return "\n".join("\n".join(textwrap.wrap(line, width)) for line in text.splitlines())


def _width(parsed_args: argparse.Namespace) -> int:
    if parsed_args.max_width > 0:
        return int(parsed_args.max_width)
    fits = parsed_args.fit_width or sys.stdout.isatty()
    return (utils.terminal_width() if fits else None) or _ANY


def _blocks(columns: Sequence[Column]) -> str:
    label = max(len(column.title) for column in columns)
    blocks = []
    for row in zip(*(column.cells for column in columns), strict=True):
        lines = []
        for column, cell in zip(columns, row, strict=True):
            first, *others = cell.splitlines() or [""]
            if cell:
                lines += [f"{column.title:<{label}}  {first}", *(f"{'':<{label}}  {other}" for other in others)]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)
