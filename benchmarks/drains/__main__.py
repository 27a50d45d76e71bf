"""``python -m benchmarks.drains``: plans of large clouds, a cell drained in simulated time, and servers that are really moved."""

from __future__ import annotations

import json
import logging
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks.drains import moves, planned, simulated
from causeway.model.drains import duration

_KINDS = ("plan", "simulated", "moves")


@click.command()
@click.option("--only", type=click.Choice(_KINDS), multiple=True, help="Only these.")
@click.option("--cells", default=75, show_default=True, help="Of the cloud for which is planned.")
@click.option("--hosts", default=8_000, show_default=True, help="Of that cloud, in all.")
@click.option("--planned", "planned_servers", default=100_000, show_default=True, help="Servers that are planned.")
@click.option("--drained", default=2_000, show_default=True, help="Servers that are drained in simulated time.")
@click.option("--sources", default=100, show_default=True, help="Hosts that they are on.")
@click.option("--targets", default=160, show_default=True, help="Hosts that they go to, in three cells.")
@click.option("--moved", default=200, show_default=True, help="Servers that are really moved, by a drain.")
@click.option("--singles", default=30, show_default=True, help="Servers that are really moved, one by one.")
@click.option("--at-once", default=20, show_default=True, help="How many of them the drain moves at once.")
@click.option("--how", type=click.Choice(["warm", "gentlest"]), default="warm", show_default=True, help="How.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), default=Path("bench-drain.json"))
def main(only: tuple[str, ...], json_file: Path, **sizes: Any) -> None:
    """Measures drains; prints tables and writes JSON_FILE."""
    warnings.simplefilter("ignore")
    logging.getLogger("keystonemiddleware").setLevel(logging.ERROR)
    console = Console()
    if not console.is_terminal:
        console.width = 160
    wanted, found = only or _KINDS, dict[str, Any]()

    def say(what: str) -> None:
        console.print(f"[dim]{what}[/]")

    if "simulated" in wanted:
        drained = simulated.measure(sizes["drained"], sizes["sources"], sizes["targets"], say)
        found["simulated"] = [asdict(each) for each in drained]
        console.print(_of_drained(drained, sizes["drained"]))
    if "moves" in wanted:
        moved = moves.measure(sizes["moved"], sizes["singles"], 4, sizes["how"], sizes["at_once"], say)
        found["moves"] = [asdict(each) for each in moved]
        console.print(_of_moves(moved, sizes["how"]))
    if "plan" in wanted:
        plan = planned.measure(sizes["cells"], sizes["hosts"], sizes["planned_servers"], say)
        found["plan"] = asdict(plan)
        console.print(_of_plan(plan))
    json_file.write_text(json.dumps(found, indent=1))


def _of_drained(found: list[simulated.Drained], servers: int) -> Table:
    columns = ("Takes", "Over the bound", "Its resource used", "At once", "At most", "Sent", "Pause", "Longest pause")
    table = Table("How", *columns, title=f"A cell of {servers} servers, in simulated time")
    for each in found:
        table.add_row(
            each.how,
            f"{each.hours:.2f} h",
            f"{each.over_bound:.0%}",
            f"{each.used:.0%}",
            f"{each.at_once:.0f}",
            str(each.most_at_once),
            f"{each.sent_tib:.1f} TiB",
            f"{each.pause_median:.2f} s",
            f"{each.pause_worst:.1f} s",
        )
    table.caption = f"The bound: {found[0].bound:.2f} h, {found[0].bound_by}"
    return table


def _of_moves(found: list[moves.Moved], how: str) -> Table:
    table = Table("How", "Servers", "Failed", "Takes", "Moves a second", "CPU of each", title=f"Really moved: {how}")
    for each in found:
        table.add_row(
            each.how,
            str(each.servers),
            str(each.failed),
            f"{each.seconds:.1f} s",
            f"{each.per_second:.2f}",
            f"{1000 * each.cpu_per_move:.0f} ms",
        )
    return table


def _of_plan(found: planned.Planned) -> Table:
    table = Table("", "", title="A plan", show_header=False)
    table.add_row("Cells, hosts, servers", f"{found.cells}, {found.hosts:,}, {found.servers:,}")
    table.add_row("Takes", f"{duration(found.seconds)}, of these {found.cpu:.0f} s of CPU")
    table.add_row("Requests to the services", ", ".join(f"{name}: {n}" for name, n in found.calls.items()))
    table.add_row("Statements in all databases", f"{found.statements:,}")
    table.add_row("Memory of the whole process", f"{found.memory_mib:.0f} MiB")
    table.add_row("It says", found.summary)
    return table


if __name__ == "__main__":
    main()
