"""``python -m benchmarks.scale [--cells 10] [--hosts 1000] [--servers 100000]``."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks.scale import report
from benchmarks.scale.benchmark import Benchmark, Plan
from benchmarks.scale.deployment import Deployment
from benchmarks.scale.ending import CutShort, nothing_left
from benchmarks.scale.profiling import Profiler
from tests.functional.processes.rabbit import rabbit
from tests.integration.database_servers import database_server


@click.command()
@click.option("--cells", default=10, show_default=True, type=click.IntRange(2))
@click.option("--hosts", default=1000, show_default=True, type=click.IntRange(1), help="In each cell.")
@click.option(
    "--computes",
    default=50,
    show_default=True,
    help="Hosts of each cell that have a compute service; the others are records. 0: all.",
)
@click.option("--servers", default=100_000, show_default=True, type=click.IntRange(20), help="In all cells together.")
@click.option(
    "--movers", default=16, show_default=True, type=click.IntRange(2), help="Servers that move at the same time."
)
@click.option(
    "--seconds", default=25.0, show_default=True, help="How long decisions (half of it) and moves are counted."
)
@click.option(
    "--reads",
    default=30,
    show_default=True,
    type=click.IntRange(3),
    help="Lists that are timed; ten times as many shows.",
)
@click.option(
    "--host-subset-size",
    default=32,
    show_default=True,
    type=click.IntRange(1),
    help="[filter_scheduler]: with more than 1, requests at the same time do not all want the same best host.",
)
@click.option(
    "--warm", default=0, show_default=True, help="Share of cold migrations of running servers to another cell."
)
@click.option("--live", default=0, show_default=True, help="Share of live migrations inside a cell.")
@click.option(
    "--near-live",
    default=0,
    show_default=True,
    help="Share of live migrations to another cell. Shares of what is moved of servers of their own; all 0: not measured.",
)
@click.option("--link-bandwidth", default=0.0, show_default=True, help="MiB/s in which a host sends; 0: no limit.")
@click.option("--link-latency", default=0.0, show_default=True, help="Seconds before anything comes.")
@click.option(
    "--guest-data", default=0.0, show_default=True, help="GiB on the disk of each server that moves in every way."
)
@click.option("--guest-disk-rate", default=0.0, show_default=True, help="MiB/s that each of them writes to it.")
@click.option(
    "--guest-memory-rate", default=0.0, show_default=True, help="MiB/s that each changes of its 256 MiB of memory."
)
@click.option(
    "--clock-speed",
    default=0.0,
    show_default=True,
    help="Seconds of transfers that pass in a real one; 0: transfers take the time that they take.",
)
@click.option("--only", type=click.Choice(["reads", "moves"]), help="Only lists, shows and decisions, or only moves.")
@click.option("--whole-only", is_flag=True, help="Not the small cloud that the large one is compared with.")
@click.option(
    "--minutes",
    default=10.0,
    show_default=True,
    help="It is cut short then, and tells what it knows by then. 0: never.",
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), default=Path("bench-scale.json"))
@click.option("--profile", type=click.Path(file_okay=False, path_type=Path), help="Folder for profiles; needs py-spy.")
@click.option(
    "--state-dir", type=click.Path(file_okay=False, path_type=Path), help="Keeps configuration and logs there."
)
def main(
    json_file: Path,
    only: str | None,
    whole_only: bool,
    minutes: float,
    profile: Path | None,
    state_dir: Path | None,
    **sizes: Any,
) -> None:
    """Measures a cloud of one cell (two for moves), then one of all cells; prints a table and writes JSON.

    Interrupted (SIGINT, SIGTERM) it does the same with what it knows by then, and ends all that it started.
    """
    warnings.simplefilter("ignore")
    logging.getLogger("oslo_messaging").setLevel(logging.ERROR)
    console = Console()
    if not console.is_terminal:
        console.width = 150
    plan = Plan(**sizes)
    if plan.records_only and plan.computes < plan.host_subset_size:
        raise click.UsageError(
            "--computes: at least as many as --host-subset-size, or moves go to hosts that are records."
        )
    found: dict[int, dict[str, Any]] = {}
    try:
        with nothing_left("bench-scale-", 60 * minutes) as temporary:
            directory = state_dir or temporary / "cloud"
            directory.mkdir(parents=True, exist_ok=True)
            try:
                _measure(plan, directory, Profiler(profile), console, found, only, whole_only)
            finally:
                _tell(plan, found, console, json_file)
    except CutShort as cut:
        console.print(f"[red]Cut short: {cut}. The table has what was measured by then.")
        sys.exit(cut.status)


def _measure(
    plan: Plan,
    directory: Path,
    profiler: Profiler,
    console: Console,
    found: dict[int, dict[str, Any]],
    only: str | None,
    whole_only: bool,
) -> None:
    with ExitStack() as stack:
        names = ("cloud", *(f"cell{n}" for n in range(1, plan.cells + 1)))
        queue = stack.enter_context(rabbit(directory / "rabbit", hosts=names))
        new_database = stack.enter_context(database_server("postgresql"))
        options: dict[str, dict[str, object]] = {
            "filter_scheduler": {"host_subset_size": plan.host_subset_size},
            "simulated": plan.simulated(directory),
        }
        deployment = Deployment(
            directory,
            queue,
            new_database,
            cells=plan.cells,
            hosts=plan.hosts,
            computes=plan.computes if plan.records_only else None,
            options=options,
            habits=plan.habits,
        )
        bench = Benchmark(deployment, plan, queue, console, profiler)
        # What is cut short need not end in good order; who does not end at once is killed.
        stack.callback(deployment.stop, 2.0)
        with bench.telling("API, super conductor, scheduler, Placement start"):
            deployment.start()
            deployment.start_services()
        for cells in (plan.cells,) if whole_only else (1, plan.cells):
            found[cells] = {}
            bench.grow(cells)
            if only != "moves":
                bench.reads_and_decisions(found[cells])
            if only != "reads":
                bench.grow(max(cells, 2))
                bench.moves(found[cells])
        with bench.telling("everything ends"):
            deployment.stop()


def _tell(plan: Plan, found: dict[int, dict[str, Any]], console: Console, json_file: Path) -> None:
    answer = report.as_json(plan, found)
    report.show(answer, console)
    json_file.write_text(json.dumps(answer, indent=2) + "\n")
    console.print(f"Written to {json_file}.")


if __name__ == "__main__":
    main()
