"""What it costs that moves outlive a power cut: syncs of an operation, and its milliseconds with and without them.

Without: records that are files and received disks are not synced, API and cell databases are at ``synchronous=NORMAL``. Placement
in the process and devcloud sync either way: these are not what Causeway itself adds.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import sqlalchemy as sa
from rich.console import Console
from rich.table import Table
from sqlalchemy import event

from benchmarks import operations
from benchmarks.cloud import MeasuredCloud
from causeway import durable

OPERATIONS: dict[str, dict[str, Any]] = {
    "resize": operations.RESIZE,
    "confirm": operations.CONFIRM,
    "revert": operations.REVERT,
}


def measure(directory: Path, rounds: int) -> dict[str, Any]:
    """operation -> syncs of files and folders, commits to SQLite (a sync each), milliseconds with and without."""
    with MeasuredCloud(directory / "with") as cloud:
        counts = count(cloud)
        with_syncs = operations.measure_moves(cloud, rounds)
    with (
        patch.object(durable, "_sync", lambda _descriptor: None),
        MeasuredCloud(directory / "without", synchronous=False) as cloud,
    ):
        without = operations.measure_moves(cloud, rounds)
    return {
        name: {
            **counts[name],
            "with": round(median(with_syncs[name].runs), 2),
            "without": round(median(without[name].runs), 2),
        }
        for name in OPERATIONS
    }


def count(cloud: MeasuredCloud) -> dict[str, dict[str, int]]:
    """operation -> syncs and commits: the fewest of the rounds, because the first one also downloads the image."""
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in OPERATIONS}
    commits: Counter[str] = Counter()

    def committed(connection: sa.Connection) -> None:
        if connection.dialect.name == "sqlite":
            commits["all"] += 1

    event.listen(sa.engine.Engine, "commit", committed)
    try:
        for _round in range(2):
            for end in ("confirm", "revert"):
                server = cloud.boot()
                for name in ("resize", end):
                    before = durable.syncs.total, commits["all"]
                    moves = cloud.hooks.moves_ended
                    cloud.act(server, OPERATIONS[name])
                    cloud.settle(moves + 1)
                    found[name].append((durable.syncs.total - before[0], commits["all"] - before[1]))
    finally:
        event.remove(sa.engine.Engine, "commit", committed)
    return {
        name: {"files": min(files for files, _ in runs), "commits": min(made for _, made in runs)}
        for name, runs in found.items()
    }


def show(found: dict[str, Any], console: Console) -> None:
    table = Table(title="What outliving a power cut costs", title_justify="left")
    table.add_column("Operation")
    for column in ("syncs of files and folders", "commits to SQLite", "ms with", "ms without", "more"):
        table.add_column(column, justify="right")
    for name, one in found.items():
        more = one["with"] / one["without"] - 1
        table.add_row(
            operations.TITLES[name],
            str(one["files"]),
            str(one["commits"]),
            f"{one['with']:.1f}",
            f"{one['without']:.1f}",
            f"{more:+.0%}",
        )
    console.print(table)
