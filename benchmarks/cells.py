"""``python -m benchmarks.cells [--cells 10 --cells 100]``: what it costs one process to have many cells, as a table.

API, super conductor and scheduler are real and in this process, with Placement and queues in memory; cells are databases (SQLite)
and queues without hosts, with servers as records. Threads and connections are counted, statements are exact; times depend on the
machine.
"""

from __future__ import annotations

import json
import resource
import tempfile
import threading
import time
import uuid as uuids
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from benchmarks.scale import seed
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.flavor import Flavor
from causeway.store import schema
from causeway.store.api import aggregates, journal
from causeway.store.conditions import Deleted
from causeway.store.database import Database, statements
from causeway.store.listing import list_servers
from causeway.store.server_rows import ServerQuery, SortKey

FLAVOR = Flavor("small", "small", vcpus=1, memory_mb=128, root_gb=1)
PAGE, TIMES, IDLE_SECONDS = 1000, 10, 20.0
OPTIONS: dict[str, dict[str, Any]] = {"api_database": {"sqlite_synchronous": False}}


@dataclass
class Cost:
    """Of one operation, in the mean. ``threads`` and ``connections``: that there were after it."""

    seconds: float
    cpu_ms: float
    statements: float
    threads: int
    connections: int


@click.command()
@click.option("--cells", "sizes", multiple=True, default=(10, 100), show_default=True, type=click.IntRange(1))
@click.option("--servers", default=5000, show_default=True, help="In all cells together.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path))
def main(sizes: tuple[int, ...], servers: int, json_file: Path | None) -> None:
    """Starts a cloud of each size, asks it for lists, and looks on while nothing is asked for."""
    found = {cells: measure(cells, servers) for cells in sizes}
    table = Table(title=f"{servers} servers in all cells together")
    table.add_column("")
    for cells in sizes:
        table.add_column(f"{cells} cells: s", justify="right")
        for title in ("CPU ms", "statements", "threads", "connections"):
            table.add_column(title, justify="right")
    for what in found[sizes[0]]:
        row = [what]
        for cells in sizes:
            cost = found[cells][what]
            row += [f"{cost.seconds:.3f}", f"{cost.cpu_ms:.1f}", f"{cost.statements:.1f}"]
            row += [str(cost.threads), str(cost.connections)]
        table.add_row(*row)
    Console(width=160).print(table)
    if json_file is not None:
        costs = {cells: {what: asdict(cost) for what, cost in one.items()} for cells, one in found.items()}
        json_file.write_text(json.dumps(costs, indent=2) + "\n")


def measure(cells: int, servers: int) -> dict[str, Cost]:
    with tempfile.TemporaryDirectory(prefix="bench-cells-") as folder:
        directory = Path(folder)
        _make_databases(directory, cells)
        cloud = EmbeddedCloud(directory, port=0, cells=cells, hosts_per_cell=0, overrides=OPTIONS)
        found = {"start": _cost(cloud, cloud.start, 1)}
        try:
            _fill(cloud, servers)
            newest = ServerQuery(None, PAGE, [Deleted(False)])
            by_name = ServerQuery(None, PAGE, [Deleted(False)], sort=(SortKey("display_name"),))
            found |= {
                "ask_all": _cost(cloud, lambda: cloud.cells.ask_all(_ping), TIMES),
                "a list of 1000, newest first": _cost(cloud, lambda: list_servers(cloud.cells, newest), TIMES),
                "the same by name, from all cells": _cost(cloud, lambda: list_servers(cloud.cells, by_name), TIMES),
                "renewal of leases": _cost(
                    cloud, lambda: journal.renew(cloud.api_database, "nobody", ["no-move"], 60.0), TIMES
                ),
                f"{IDLE_SECONDS:.0f} s in which nothing is asked for": _cost(
                    cloud, lambda: time.sleep(IDLE_SECONDS), 1
                ),
            }
        finally:
            cloud.stop()
    return found


def _ping(_cell: object, database: Database) -> None:
    database.ping()


def _cost(cloud: EmbeddedCloud, act: Callable[[], object], times: int) -> Cost:
    if times > 1:
        act()
    said, cpu, began = statements.snapshot().total(), _cpu(), time.perf_counter()
    for _ in range(times):
        act()
    took, worked = time.perf_counter() - began, _cpu() - cpu
    return Cost(
        took / times,
        1000 * worked / times,
        (statements.snapshot().total() - said) / times,
        threading.active_count(),
        cloud.cells.budget.open,
    )


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _make_databases(directory: Path, cells: int) -> None:
    """Those of cells, with their schema: making it is not what a start costs."""
    template = Database(f"sqlite:///{directory}/template.sqlite", "template", synchronous=False)
    schema.sync(template, "cell")
    # Closing the last connection writes everything into the one file.
    template.close()
    content = (directory / "template.sqlite").read_bytes()
    for number in range(cells + 1):
        (directory / f"cell{number}.sqlite").write_bytes(content)


def _fill(cloud: EmbeddedCloud, servers: int) -> None:
    """A host in each cell with its share of the servers, all as records."""
    # The first request that needs them makes Placement write its classes and traits.
    cloud.around.placement.list_providers()
    placement = sa.create_engine(cloud.state.database("placement"))
    everyone = aggregates.create(cloud.api_database, "everyone", {}).id
    owner = seed.Owner(str(uuids.uuid4()), str(uuids.uuid4()))
    cells = cloud.cells.mappings(cell0=False)
    for cell in cells:
        nodes = {f"{cell.name}-host": str(uuids.uuid4())}
        made = seed.Cell(cell.name, cell.uuid, cloud.cells.database(cell.uuid), nodes)
        seed.make_hosts(cloud.api_database, placement, made, cloud.state.path, everyone)
        seed.make_servers(cloud.api_database, placement, made, owner, owner, servers // len(cells), "image", FLAVOR)
    placement.dispose()


if __name__ == "__main__":
    main()
