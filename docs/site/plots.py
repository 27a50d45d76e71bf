"""Plots of the figures that docs/performance.md records: bars, made from its tables, so that both say the same."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

COLORS = ("#9aa5b1", "#0b6e99", "#e0c36b", "#52606d")


@dataclass(frozen=True)
class Plot:
    """``section``: the heading of the table's section. ``columns``: which columns are shown (0 is the first), with their names.

    ``rows``: a pattern that the first cell (with the second) of a row matches; ``scale``: "log" where figures are far apart.
    """

    name: str
    section: str
    title: str
    unit: str
    columns: tuple[tuple[int, str], ...]
    header: str
    rows: str = ".*"
    scale: str = "linear"


PLOTS = (
    Plot(
        "guest-off",
        "How long a guest is off",
        "How long a guest with 8 GiB of data can't be reached",
        "seconds",
        ((4, "silent outside"),),
        "the disk travels",
        r".*\| 8$",
        scale="log",
    ),
    Plot(
        "decisions",
        "Decisions",
        "A scheduler's decision, by the number of hosts",
        "ms",
        ((1, "before"), (2, "now")),
        "hosts",
        scale="log",
    ),
    Plot(
        "lists",
        "Lists",
        "A list of servers in ten cells",
        "ms",
        ((2, "before"), (4, "now")),
        "ms",
    ),
    Plot(
        "drain",
        "Draining a cell",
        "How long a drain of 2,000 servers takes, by moves at once",
        "hours",
        ((1, "takes"),),
        "moves at once",
        scale="log",
    ),
)


def pictures(performance: str) -> dict[str, str]:
    """name -> SVG. ``performance``: the text of docs/performance.md. Raises ValueError where a table is not there any more."""
    return {plot.name: _bars(plot, figures(plot, performance)) for plot in PLOTS}


def with_plots(performance: str, folder: str) -> str:
    """The page with each plot below the heading of its section."""
    for plot in PLOTS:
        picture = f"![{plot.title}, in {plot.unit}: the figures are in a table below]({folder}/{plot.name}.svg)"
        heading = f"## {plot.section}\n"
        performance = performance.replace(heading, f"{heading}\n{picture}\n", 1)
    return performance


def figures(plot: Plot, performance: str) -> list[tuple[str, list[float]]]:
    found = re.search(rf"^## {re.escape(plot.section)}\n(.*?)(?=^## |\Z)", performance, re.MULTILINE | re.DOTALL)
    tables = re.findall(r"(?:^\|.*\n)+", found[1], re.MULTILINE) if found else []
    for table in tables:
        cells = [
            [cell.strip().replace("*", "") for cell in line.strip("|\n").split("|")] for line in table.splitlines()
        ]
        if cells[0][0] == plot.header:
            rows = [row for row in cells[2:] if re.fullmatch(plot.rows, " | ".join(row[:2]))]
            if rows:
                return [(row[0], [_number(row[column]) for column, _ in plot.columns]) for row in rows]
    raise ValueError(f'docs/performance.md: there is no table for the plot "{plot.name}" in "{plot.section}"')


def _number(cell: str) -> float:
    """The first number of a cell."""
    found = re.search(r"\d[\d,]*(?:\.\d+)?", cell)
    if found is None:
        raise ValueError(f"docs/performance.md: there is no number in the cell {cell!r}")
    return float(found[0].replace(",", ""))


def _bars(plot: Plot, figures: list[tuple[str, list[float]]]) -> str:
    # Imported here: all else of this module works where the site can't be made.
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    labels = [re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", label) for label, _ in figures]
    with pyplot.rc_context({"svg.hashsalt": plot.name, "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.45 * len(labels) * len(plot.columns)), layout="constrained")
        height = 0.8 / len(plot.columns)
        for place, (_, name) in enumerate(plot.columns):
            positions = [row + place * height for row in range(len(labels))]
            bars = axes.barh(
                positions, [values[place] for _, values in figures], height, label=name, color=COLORS[place]
            )
            axes.bar_label(bars, fmt="{:,g}", padding=3)
        axes.set_yticks([row + 0.4 - height / 2 for row in range(len(labels))], labels)
        axes.invert_yaxis()
        axes.set_xscale(plot.scale)
        axes.set_xlabel(plot.unit)
        axes.set_title(plot.title, loc="left")
        axes.margins(x=0.12)
        if len(plot.columns) > 1:
            axes.legend()
        axes.spines[["top", "right"]].set_visible(False)
        output = io.StringIO()
        figure.savefig(output, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return output.getvalue()
