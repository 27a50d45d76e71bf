"""``python -m benchmarks [--json FILE] [--quick] [--only counts] [--record | --callgrind]``."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks import callgrind, durability, operations, recorded, report, starts
from benchmarks.cloud import MeasuredCloud
from benchmarks.counting import Counts, typical
from benchmarks.instructions import Meter

ALL = ("moves", "lifecycle", "concurrent", "reads", "counts", "durability", "starts")


@click.command()
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), default=Path("bench-results.json")
)
@click.option("--quick", is_flag=True, help="Fewer runs.")
@click.option(
    "--only",
    type=click.Choice(ALL),
    multiple=True,
    help="Only these.",
)
@click.option(
    "--record",
    is_flag=True,
    help="Counts only, and keeps the instructions of each operation for the test that holds them.",
)
@click.option(
    "--callgrind",
    "in_callgrind",
    is_flag=True,
    help="Counts only, inside of valgrind: instructions on machines that have no counter. Takes some minutes.",
)
def main(json_file: Path, quick: bool, only: tuple[str, ...], record: bool, in_callgrind: bool) -> None:
    """Measures latencies, counts calls and instructions; prints tables and writes JSON_FILE."""
    if in_callgrind:
        if record:
            raise click.UsageError("instructions that callgrind counts are not recorded: those of the kernel are held")
        sys.exit(callgrind.run(["--quick", "--only", "counts", "--json", str(json_file)]))
    refusal = _why_not_counted()
    if record and refusal:
        raise click.ClickException(f"instructions can't be recorded here: {refusal}")
    # What libraries deprecate is of no interest here.
    warnings.simplefilter("ignore")
    logging.getLogger("keystonemiddleware").setLevel(logging.ERROR)
    # That nobody wanted to hear of the port of a server that is gone.
    logging.getLogger("causeway.devcloud.background.plugging").setLevel(logging.ERROR)
    console = Console()
    if not console.is_terminal:
        console.width = 140
    wanted = ("counts",) if record else only or ALL
    times: dict[str, operations.Series] = {}
    counts: dict[str, list[Counts]] = {}
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as directory:
        if set(wanted) - {"counts", "durability", "starts"}:
            with console.status("times"), MeasuredCloud(Path(directory) / "times") as cloud:
                if "moves" in wanted:
                    times |= operations.measure_moves(cloud, 5 if quick else 20)
                if "lifecycle" in wanted:
                    times |= operations.measure_lifecycle(cloud, 5 if quick else 20)
                if "reads" in wanted:
                    server = cloud.boot()
                    times["show"] = operations.measure_get(cloud, f"/servers/{server}", 50 if quick else 200)
                if "concurrent" in wanted:
                    times["resize x20"] = operations.measure_concurrent(cloud, 1 if quick else 3)
                if "reads" in wanted:
                    # The server from above is one of them.
                    operations.fill(cloud, operations.LISTED - 1)
                    times["detail"] = operations.measure_get(cloud, "/servers/detail", 10 if quick else 30)
        if "counts" in wanted:
            with console.status("calls"), MeasuredCloud(Path(directory) / "calls", quiet=True) as cloud:
                counts |= operations.count_all(cloud, 3 if quick else 10)
        costs: dict[str, Any] = {}
        if "durability" in wanted:
            with console.status("syncs"):
                costs = durability.measure(Path(directory) / "durability", 5 if quick else 20)
    loaded: dict[str, Any] = {}
    if "starts" in wanted:
        with console.status("starts"):
            loaded = starts.measure(1 if quick else 5)
    found = report.as_json(times, counts, refusal) | {"durability": costs, "starts": loaded}
    report.show(found, console)
    if costs:
        durability.show(costs, console)
    if loaded:
        starts.show(loaded, console)
    json_file.write_text(json.dumps(found, indent=2) + "\n")
    console.print(f"Written to {json_file}.")
    if record:
        recorded.save({name: typical([run.spent for run in runs]).instructions or 0 for name, runs in counts.items()})
        console.print(f"Recorded for {recorded.kind()} in {recorded.FILE}.")


def _why_not_counted() -> str:
    meter = Meter()
    meter.close()
    return meter.refusal


main()
