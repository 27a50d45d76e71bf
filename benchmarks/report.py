"""What was measured, as tables and as JSON."""

from __future__ import annotations

import os
import platform
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import peer, shares
from benchmarks.counting import Counts, typical
from benchmarks.instructions import Spent
from benchmarks.operations import TITLES, Series

MILLION = 1_000_000
KINDS = {"sql": "SQL statements", "rpc": "RPCs", "placement": "Placement calls", "http": "other HTTP calls"}


def as_json(times: dict[str, Series], counts: dict[str, list[Counts]], refusal: str) -> dict[str, Any]:
    """``refusal``: why instructions were not counted; empty if they were."""
    spent = {name: [run.spent for run in runs] for name, runs in counts.items()}
    spent |= {name: series.spent for name, series in times.items() if series.spent}
    return {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.system()},
        "peer": peer.SOURCE,
        "milliseconds": {name: _times(name, series) for name, series in times.items()},
        "calls": {name: _calls(name, runs[-1]) for name, runs in counts.items()},
        "instructions_not_counted": refusal,
        "spent": {name: _spent(name, typical(runs), len(runs)) for name, runs in spent.items()},
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
    found["sql"]["with_placement"] = counts.total("sql") + counts.placement_sql
    if name == "resize":
        for kind in KINDS:
            found[kind] |= _beside_peer(peer.CALLS[kind], counts.total(kind))
        with_placement = _beside_peer(peer.CALLS["sql_with_placement"], found["sql"]["with_placement"])
        found["sql"] |= {f"{key}_with_placement": value for key, value in with_placement.items()}
    return found


def _beside_peer(numbers: tuple[int, int], ours: int) -> dict[str, Any]:
    return {"peer": list(numbers), "share": round(2 * ours / sum(numbers), 2)}


def _spent(name: str, spent: Spent, runs: int) -> dict[str, Any]:
    found: dict[str, Any] = {"user_ms": round(spent.user_seconds * 1000, 2), "runs": runs}
    found["shares"] = {part: round(share, 3) for part, share in shares.of(spent.parts).items()}
    if spent.instructions is not None:
        found["million_instructions"] = round(spent.instructions / MILLION, 2)
    if name in peer.MILLION_INSTRUCTIONS:
        found["peer_million_instructions"] = peer.MILLION_INSTRUCTIONS[name]
        if spent.instructions:
            found["times_less"] = round(peer.MILLION_INSTRUCTIONS[name] * MILLION / spent.instructions, 1)
    return found


def show(report: dict[str, Any], console: Console) -> None:
    if report["milliseconds"]:
        console.print(_time_table(report))
    if report["calls"]:
        console.print(_call_table(report))
    if report["spent"]:
        console.print(_work_table(report))
        if report["instructions_not_counted"]:
            console.print(f"Instructions were not counted: {report['instructions_not_counted']}.")
    console.print(f"Nova: {peer.SOURCE}.")


def _time_table(report: dict[str, Any]) -> Table:
    table = Table(title="Latency in ms", title_justify="left")
    table.add_column("Operation")
    for column in ("median", "min", "max", "Placement", "ours on top", "journal", "Nova", "times faster"):
        table.add_column(column, justify="right")
    for name, found in report["milliseconds"].items():
        # Concurrent calls wait for one another inside Placement: their sum says nothing about the whole.
        alone = name != "resize x20"
        table.add_row(
            TITLES[name],
            *(f"{found[key]:.1f}" for key in ("median", "min", "max")),
            f"{found['placement']:.1f}" if alone else "",
            f"{found['own']:.1f}" if alone else "",
            f"{found['journal']:.1f} ({found['journal_share']:.0%})" if alone and found["journal"] else "",
            _range(found["peer"]) if "peer" in found else "",
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
            if kind == "sql" and found[kind]["with_placement"] > found[kind]["total"]:
                text += f"\nwith Placement's {found[kind]['with_placement']}"
            if "peer" in found[kind]:
                text += f"\nNova {_range(found[kind]['peer'])}"
            if "peer_with_placement" in found[kind]:
                text += f", with Placement's {_range(found[kind]['peer_with_placement'])}"
            cells.append(text)
        table.add_row(TITLES[name], *cells)
    return table


def _work_table(report: dict[str, Any]) -> Table:
    """Instructions if they were counted; the peer's also if not, for they are known."""
    counted = not report["instructions_not_counted"]
    table = Table(title="Work of the whole process", title_justify="left")
    table.add_column("Operation")
    for column in (
        "user CPU ms",
        *(("million instructions",) if counted else ()),
        "Nova: million instructions",
        *(("times less",) if counted else ()),
        "ours",
        *shares.OTHERS,
        shares.GARBAGE,
    ):
        table.add_column(column, justify="right")
    for name, found in report["spent"].items():
        table.add_row(
            TITLES[name],
            f"{found['user_ms']:.2f}",
            *((f"{found['million_instructions']:.1f}",) if counted else ()),
            f"{found['peer_million_instructions']:g}" if "peer_million_instructions" in found else "",
            *((f"{found.get('times_less', '')}",) if counted else ()),
            *(f"{share:.1%}" for share in found["shares"].values()),
        )
    return table


def _range(numbers: list[float]) -> str:
    low, high = numbers
    return f"{low:g}" if low == high else f"{low:g}-{high:g}"
