"""``python -m benchmarks.decisions [--hosts N] [--json FILE]``: what a decision of the scheduler takes of the CPU.

Hosts are records in the databases of two cells and in the real Placement (SQLite, in this process); half of them have what the
flavor asks for, all have room, and some have more than others. Each decision ends with its claim.
"""

from __future__ import annotations

import json
import resource
import statistics
import tempfile
import time
import uuid as uuids
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from benchmarks.scale import seed
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.flavor import Flavor
from causeway.scheduler import RequestSpec, Scheduler
from causeway.scheduler.cells_source import CellsSource
from causeway.store.api import aggregates

FLAVOR = Flavor("gen1", "gen1", vcpus=1, memory_mb=512, root_gb=1, extra_specs={"gen": "1"})
AT_ONCE = 16
WARM_UP = 3
IDLE_SECONDS = 5.0
OPTIONS: dict[str, dict[str, Any]] = {
    # Hosts that are records do not report.
    "DEFAULT": {"service_down_time": 36_000},
    "api_database": {"sqlite_synchronous": False},
    "drains": {"interval": 0.0},
}


@dataclass
class Decisions:
    """CPU in milliseconds, of the whole process: scheduler, Placement, databases.

    ``mean`` has what is looked up from time to time as well, as often as it was due meanwhile, without what the cloud takes when
    nothing is asked for. ``repeated``: claims that lost
    a race, of each decision of those made at once.
    """

    hosts: int
    median: float
    mean: float
    first: float
    wall: float
    repeated: float
    explanation_bytes: int


@click.command()
@click.option(
    "--hosts", multiple=True, type=int, default=(100, 1000, 10_000), show_default=True, help="Sizes of clouds."
)
@click.option("--decisions", default=40, show_default=True, help="Decisions one after the other in each of them.")
@click.option("--subset", default=1, show_default=True, help="host_subset_size.")
@click.option("--pause", default=0.0, show_default=True, help="Seconds between two decisions.")
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Writes the figures there, too."
)
def main(hosts: tuple[int, ...], decisions: int, subset: int, pause: float, json_file: Path | None) -> None:
    """Prints a row for each size of a cloud."""
    found = [measure(size, decisions, subset, pause) for size in hosts]
    table = Table(
        "hosts",
        "CPU ms, median",
        "mean",
        "the first",
        "wall ms",
        f"repeated claims, {AT_ONCE} at once",
        "explanation, bytes",
    )
    for one in found:
        table.add_row(
            str(one.hosts),
            *(f"{value:.0f}" for value in (one.median, one.mean, one.first, one.wall)),
            f"{one.repeated:.2f}",
            str(one.explanation_bytes),
        )
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(one) for one in found], indent=2) + "\n")


def measure(hosts: int, decisions: int, subset: int, pause: float) -> Decisions:
    with tempfile.TemporaryDirectory(prefix="bench-decisions-") as directory:
        cloud = EmbeddedCloud(Path(directory), port=0, cells=2, hosts_per_cell=0, overrides=OPTIONS)
        cloud.start()
        try:
            _fill(cloud, hosts)
            cloud.conf.set_override("host_subset_size", subset, group="filter_scheduler")
            scheduler = Scheduler(cloud.conf, cloud.around.placement, CellsSource(cloud.cells))
            try:
                return _measure(cloud, scheduler, hosts, decisions, pause)
            finally:
                scheduler.close()
        finally:
            cloud.stop()


def _measure(cloud: EmbeddedCloud, scheduler: Scheduler, hosts: int, decisions: int, pause: float) -> Decisions:
    before = _cpu()
    _decide(scheduler)
    first = _cpu() - before
    for _ in range(WARM_UP):
        _decide(scheduler)
    idle = _idle() if pause else 0.0
    each, explained = [], 0
    began, before = time.monotonic(), _cpu()
    for _ in range(decisions):
        one = _cpu()
        explained = _decide(scheduler)
        each.append(_cpu() - one)
        if pause:
            time.sleep(pause)
    whole, seconds = _cpu() - before, time.monotonic() - began
    placement = cloud.around.placement
    placement.reset_calls()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="decide") as pool:
        list(pool.map(lambda _number: _decide(scheduler), range(AT_ONCE)))
    repeated = placement.calls["PUT /allocations/{consumer}"] - AT_ONCE
    return Decisions(
        hosts=hosts,
        median=1000 * statistics.median(each),
        mean=1000 * (whole - idle * seconds) / decisions,
        first=1000 * first,
        wall=1000 * seconds / decisions,
        repeated=repeated / AT_ONCE,
        explanation_bytes=explained,
    )


def _decide(scheduler: Scheduler) -> int:
    """A claimed host for a new server; returns how long its explanation is."""
    spec = RequestSpec(str(uuids.uuid4()), "project", "user", FLAVOR, is_new=True)
    (found,) = scheduler.select_destinations(None, spec, [spec.instance_uuid])
    return len(msgspec.json.encode(found.explanation))


def _idle() -> float:
    """Seconds of the CPU in a second in which nothing is asked for."""
    before, began = _cpu(), time.monotonic()
    time.sleep(IDLE_SECONDS)
    return (_cpu() - before) / (time.monotonic() - began)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _fill(cloud: EmbeddedCloud, hosts: int) -> None:
    """Two cells with hosts of two generations, of which every third one has servers."""
    # The first request that needs them makes Placement write its classes and traits.
    cloud.around.placement.list_providers()
    placement = sa.create_engine(cloud.state.database("placement"))
    generations = [
        aggregates.create(cloud.api_database, f"gen{generation}", {"gen": str(generation)}).id for generation in (1, 2)
    ]
    owner = seed.Owner(str(uuids.uuid4()), str(uuids.uuid4()))
    for cell in cloud.cells.mappings(cell0=False):
        database = cloud.cells.database(cell.uuid)
        for generation, aggregate_id in enumerate(generations, 1):
            part = f"{cell.name}-gen{generation}"
            names = [f"{part}-host{number}" for number in range(hosts // 4)]
            made = seed.Cell(part, cell.uuid, database, {name: str(uuids.uuid4()) for name in names})
            seed.make_hosts(cloud.api_database, placement, made, cloud.state.path, aggregate_id)
            made.nodes = dict(list(made.nodes.items())[::3])
            seed.make_servers(cloud.api_database, placement, made, owner, owner, len(made.nodes), "image", FLAVOR)
    placement.dispose()


if __name__ == "__main__":
    main()
