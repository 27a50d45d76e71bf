"""What was measured, as a table and as JSON."""

from __future__ import annotations

import os
import platform
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import peer
from benchmarks.counting import Counts
from benchmarks.operations import TITLES, Series

KINDS = {"sql": "SQL statements", "rpc": "RPCs", "placement": "Placement calls", "http": "other HTTP calls"}


def as_json(times: dict[str, Series], counts: dict[str, Counts]) -> dict[str, Any]:
    return {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.system()},
        "peer": peer.SOURCE,
        "milliseconds": {name: _times(name, series) for name, series in times.items()},
        "calls": {name: _calls(name, of) for name, of in counts.items()},
    }


def _times(name: str, series: Series) -> dict[str, Any]:
    middle, placement = median(series.runs), median(series.placement)
    found: dict[str, Any] = {
        "median": round(middle, 2),
        "min": round(min(series.runs), 2),
        "max": round(max(series.runs), 2),
        "runs": len(series.runs),
        "placement": round(placement, 2),
        "journal": round(median(series.journal), 2),
        "journal_share": round(median(of / run for run, of in zip(series.runs, series.journal, strict=True)), 3),
        "own": round(median(run - of for run, of in zip(series.runs, series.placement, strict=True)), 2),
    }
    if name in peer.MILLISECONDS:
        low, high = peer.MILLISECONDS[name]
        found |= {"peer": [low, high], "times_faster": round((low + high) / 2 / middle, 1)}
    return found


def _calls(name: str, counts: Counts) -> dict[str, Any]:
    found: dict[str, Any] = {
        kind: {"total": counts.total(kind), "by": dict(sorted(getattr(counts, kind).items()))} for kind in KINDS
    }
    found["http"]["by_service"] = counts.by_service()
    if name == "resize":
        for kind, number in peer.CALLS.items():
            found[kind]["peer"] = number
            found[kind]["share"] = round(counts.total(kind) / number, 2)
    return found


def show(report: dict[str, Any], console: Console) -> None:
    console.print(_time_table(report))
    console.print(_call_table(report))
    console.print(f"Nova: {peer.SOURCE}.")


def _time_table(report: dict[str, Any]) -> Table:
    table = Table(title="Latency in ms", title_justify="left")
    table.add_column("Operation")
    for column in ("median", "min", "max", "Placement", "ours on top", "journal", "Nova", "times faster"):
        table.add_column(column, justify="right")
    for name, found in report["milliseconds"].items():
        low, high = found.get("peer", (None, None))
        # Concurrent calls wait for one another inside Placement: their sum says nothing about the whole.
        alone = name != "resize x20"
        table.add_row(
            TITLES[name],
            *(f"{found[key]:.1f}" for key in ("median", "min", "max")),
            f"{found['placement']:.1f}" if alone else "",
            f"{found['own']:.1f}" if alone else "",
            f"{found['journal']:.1f} ({found['journal_share']:.0%})" if alone and found["journal"] else "",
            "" if low is None else f"{low:g}" if low == high else f"{low:g}-{high:g}",
            f"{found['times_faster']:.1f}" if "times_faster" in found else "",
        )
    return table


def _call_table(report: dict[str, Any]) -> Table:
    table = Table(title="Calls", title_justify="left")
    table.add_column("Operation")
    for title in KINDS.values():
        table.add_column(title)
    for name, found in report["calls"].items():
        cells = []
        for kind in KINDS:
            by = found[kind].get("by_service") or (found[kind]["by"] if kind == "sql" else {})
            text = f"{found[kind]['total']}"
            text += f" ({', '.join(f'{what} {number}' for what, number in sorted(by.items()))})" if by else ""
            if "peer" in found[kind]:
                text += f"\nNova {found[kind]['peer']}"
            cells.append(text)
        table.add_row(TITLES[name], *cells)
    return table
