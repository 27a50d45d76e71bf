"""``python -m tests.faults.storm``: see the package."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tests.faults.clouds.site import ChildSite
from tests.faults.storm.deeds import DEEDS
from tests.faults.storm.processes import run as run_processes
from tests.faults.storm.run import Result, Storm


@click.command()
@click.option("--servers", default=30, show_default=True, help="At once.")
@click.option("--seconds", default=180.0, show_default=True, help="After these nobody asks for anything any more.")
@click.option(
    "--every",
    nargs=2,
    type=float,
    help="Seconds between crashes; 3 6 without --processes, with it 0.5 1.5 between two accidents.",
)
@click.option("--seed", default=0, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the state directory, and what was answered, here.")
@click.option("--drains/--no-drains", default=True, show_default=True, help="Cells and hosts are drained meanwhile.")
@click.option(
    "--processes", is_flag=True, help="Each role, service and server around is a process, and struck by itself."
)
@click.option("--strikes", default="", help="With --processes: only accidents with this in their names.")
@click.option("--pairs", is_flag=True, help="With --processes: two accidents at once.")
@click.option(
    "--database", "kind", type=click.Choice(["postgresql", "mariadb"]), default="postgresql", show_default=True
)
@click.option(
    "--json", "file", type=click.Path(path_type=Path), help="Write what was answered, and what was wrong, here."
)
def main(
    servers: int,
    seconds: float,
    every: tuple[float, float] | None,
    seed: int,
    keep: Path | None,
    drains: bool,
    processes: bool,
    strikes: str,
    pairs: bool,
    kind: str,
    file: Path | None,
) -> None:
    """Runs the storm and says what became of the servers."""
    logging.basicConfig(level=logging.CRITICAL)
    directory = keep or Path(tempfile.mkdtemp(prefix="causeway-storm-"))
    tables: list[Table] = []
    try:
        if processes:
            every = every or (0.5, 1.5)
            whole = run_processes(
                directory,
                kind=kind,
                servers=servers,
                seconds=seconds,
                every=every,
                seed=seed,
                drains=drains,
                only=strikes,
                pairs=pairs,
            )
            result, written, tables = whole.result, whole.as_json(), whole.tables()
        else:
            with new_site(directory) as site:
                assert isinstance(site, ChildSite)
                every = every or (3.0, 6.0)
                result = Storm(site, servers=servers, seconds=seconds, every=every, seed=seed, drains=drains).run()
            written = {"answers": result.answers, "wrong": result.wrong}
        if keep is not None:
            (keep / "answers.json").write_text(json.dumps(result.history, indent=1))
    finally:
        if keep is None:
            shutil.rmtree(directory, ignore_errors=True)
    _print(result, tables)
    if file is not None:
        file.write_text(json.dumps(written, indent=1, default=str))
    sys.exit(1 if result.wrong else 0)


def new_site(directory: Path) -> ChildSite:
    """Shelved servers stay on their hosts until an administrator takes them off; hosts report as often as they crash."""
    site = ChildSite(directory)
    site.options["DEFAULT"] |= {"shelved_offload_time": -1, "report_interval": 5, "service_down_time": 20}
    return site


def _print(result: Result, tables: Sequence[Table] = ()) -> None:
    console = Console(width=120)

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    for uuid, complaints in result.wrong.items():
        say(uuid or "nobody's:")
        for complaint in complaints:
            say(f"    {complaint}")
    shown = Table("Asked for", "accepted", "refused", "lost", title="The storm")
    for deed in DEEDS:
        counts = [str(result.answers[f"{deed.name} {kind}"]) for kind in ("accepted", "refused", "lost")]
        shown.add_row(deed.name, *counts)
    for each in (*tables, shown):
        console.print(each)
    say(str(result))


if __name__ == "__main__":
    main()
