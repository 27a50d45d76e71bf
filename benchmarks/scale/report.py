"""What was measured, as JSON and as tables: each figure for the small and for the large cloud, and the ratio."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.scale.deployment import SUPER_CONDUCTORS, kind_of
from benchmarks.scale.kinds import Kind
from benchmarks.scale.measure import Moved, Times

READS = {
    "list": "GET /servers/detail?limit=1000",
    "list by name": "the same, sorted by name (asks all cells)",
    "show": "GET /servers/{id}",
    "decision": "a decision of the scheduler",
}
KINDS = {
    "warm": "warm: cold migrations of running servers",
    "live": "live migrations inside a cell",
    "near-live": "live migrations to another cell",
}
CPU = {
    "list": "a list",
    "show": "a show",
    "decision": "a decision",
    "moves 1": "a resize with confirm",
    "moves 2": "the same with two super conductors",
    "moves 4": "the same with four",
}

# In place of a role: all together.
ALL = ""


def as_json(plan: Any, found: dict[int, dict[str, Any]]) -> dict[str, Any]:
    return {"plan": asdict(plan), "cells": {str(cells): _figures(one) for cells, one in found.items()}}


def _figures(found: dict[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, Times):
            figures[name] = _times(value)
        elif isinstance(value, Moved):
            figures[name] = {
                "per_second": round(value.per_second, 3),
                "cycles": value.cycles,
                "failed": value.failed,
                "resize": _times(value.resize),
                "confirm": _times(value.confirm),
            }
        elif isinstance(value, Kind):
            figures[name] = {
                "failed": value.failed,
                "move": _times(value.seconds),
                "pause": _times(value.pauses),
            }
        elif isinstance(value, dict):
            figures[name] = {
                key: {part: round(size, 1) for part, size in asdict(one).items()} if is_dataclass(one) else one  # type: ignore[arg-type]
                for key, one in value.items()
            }
        else:
            figures[name] = round(value, 3)
    return figures


def _times(times: Times) -> dict[str, float]:
    if not times.seconds:
        return {"number": 0}
    return {
        "number": len(times.seconds),
        "median_ms": round(times.median * 1000, 1),
        "p99_ms": round(times.worst * 1000, 1),
    }


def show(answer: dict[str, Any], console: Console) -> None:
    sizes = list(answer["cells"])
    table = Table(title="{hosts} hosts in a cell, {servers} servers in all cells".format(**answer["plan"]))
    table.add_column("")
    for size in sizes:
        table.add_column(f"{size} cells", justify="right")
    table.add_column("ratio", justify="right")
    for title, path, unit in _rows(answer):
        values = [_at(answer["cells"][size], path) for size in sizes]
        if all(value is None for value in values) or ("CPU" in title and max(value or 0 for value in values) < 1):
            continue
        ratio = f"{values[-1] / values[0]:.2f}" if len(values) > 1 and values[0] and values[-1] is not None else ""
        table.add_row(
            title,
            *("" if value is None else f"{value:,.1f} {unit}" if unit else f"{value:,.0f}" for value in values),
            ratio,
        )
    console.print(table)
    console.print("Moves are measured with at least two cells: in the first column there are two then.")


def _rows(answer: dict[str, Any]) -> list[tuple[str, tuple[str, ...], str]]:
    rows: list[tuple[str, tuple[str, ...], str]] = []
    for name, title in READS.items():
        rows += [(f"{title}: median", (name, "median_ms"), "ms"), ("    99th percentile", (name, "p99_ms"), "ms")]
    rows.append(("decisions over all hosts", ("decisions",), "/s"))
    for conductors in SUPER_CONDUCTORS:
        key = f"moves {conductors}"
        rows += [
            (f"cross-cell resizes with confirm, super conductors: {conductors}", (key, "per_second"), "/s"),
            ("    resize: median", (key, "resize", "median_ms"), "ms"),
            ("    confirm: median", (key, "confirm", "median_ms"), "ms"),
            ("    failed", (key, "failed"), ""),
        ]
    for kind, title in KINDS.items():
        key = f"kind {kind}"
        rows += [
            (f"{title}: number", (key, "move", "number"), ""),
            ("    median", (key, "move", "median_ms"), "ms"),
            ("    for which the guest did nothing: median", (key, "pause", "median_ms"), "ms"),
            ("    failed", (key, "failed"), ""),
        ]
    for name, title in CPU.items():
        key = f"cpu {name}"
        roles = dict.fromkeys(role for one in answer["cells"].values() for role in one.get(key, {}))
        rows += [(f"CPU for {title}: all", (key, ALL), "ms")] if roles else []
        rows += [(f"CPU for {title}: {role}", (key, role), "ms") for role in roles]
    roles = dict.fromkeys(role for one in answer["cells"].values() for role in one.get("cpu idle", {}))
    rows += [(f"CPU when nothing is asked for: {role}", ("cpu idle", role), "%") for role in roles]
    for kind, when in (("memory", ""), ("memory moves", " after moves")):
        names = dict.fromkeys(name for one in answer["cells"].values() for name in one.get(kind, {}))
        for name in dict.fromkeys(map(kind_of, names)):
            rows.append((f"resident{when}: {name}, each", (kind, name), "MiB"))
    rows += [("connections to PostgreSQL", ("connections",), ""), ("    after moves", ("connections moves",), "")]
    return rows


def _at(figures: dict[str, Any], path: tuple[str, ...]) -> Any:
    if path[0].startswith("memory"):
        sizes = [one["rss"] for name, one in figures.get(path[0], {}).items() if kind_of(name) == path[1]]
        return sum(sizes) / len(sizes) if sizes else None
    value: Any = figures
    if path[-1] == ALL:
        return sum(figures[path[0]].values()) if path[0] in figures else None
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
