"""``causeway explain``: where a server could be moved to, and why not elsewhere. Changes nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from causeway.cli import ask
from causeway.cli.up import DEFAULT_STATE_DIR
from causeway.model.candidates import MoveCandidate, MoveCandidates, MoveContents, PreCheck

VERDICTS = {True: "[green]ok[/]", False: "[red]no[/]", None: "[yellow]?[/]"}


@click.command()
@click.argument("server")
@click.option("--flavor", help="The flavor to resize to, by name or id. Without it: a cold migration.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STATE_DIR,
    show_default=True,
    help="The state directory of a cloud that `causeway up` runs.",
)
@click.option("--os-cloud", help="An administrator's cloud of clouds.yaml, for a cloud of many processes.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@click.option("--timeout", default=120.0, show_default=True, help="Seconds to wait for the answer.")
def explain(
    server: str, flavor: str | None, state_dir: Path, os_cloud: str | None, as_json: bool, timeout: float
) -> None:
    """Say where SERVER (name or id) could be moved to, and for every other host why not.

    Nothing is moved, claimed or written. Exit status: 0 if a host fits, 1 if none does, 2 if the cloud could not be asked.
    """
    connection = ask.connect(state_dir, os_cloud)
    found = _explanation(connection, server, flavor, timeout)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found), indent=2))
    else:
        show(found, Console())
    sys.exit(0 if any(candidate.fits for candidate in found.candidates) else 1)


def _explanation(connection: object, server: str, flavor: str | None, timeout: float) -> MoveCandidates:
    server_id = ask.id_of_server(connection, server, timeout)
    flavor_id = None if flavor is None else ask.id_of(connection, "flavors", flavor, timeout, is_public="None")
    body = ask.ask(connection, f"/servers/{server_id}/move-candidates", timeout=timeout, flavor=flavor_id)
    return msgspec.convert(body["move_candidates"], MoveCandidates)


def show(found: MoveCandidates, console: Console) -> None:
    """The answer for people: what would be moved, then each host, the best first."""
    console.print(
        f"Server [bold]{found.server}[/], on {found.source_host} in {found.source_cell}, flavor {found.flavor}"
    )
    console.print(f"Would move: {_contents(found.moves)}")
    if found.refusal:
        console.print(f"[red]The request would be refused now:[/] {escape(found.refusal)}")
    console.print(_table(found))
    for cell in found.silent_cells:
        console.print(f"[yellow]Cell {cell} does not answer: nothing is known of its hosts.[/]")
    console.print(escape(found.summary))


def _contents(moves: MoveContents) -> str:
    disk = "nothing" if not moves.disk_gb else f"a disk of {moves.disk_gb} GiB"
    if moves.disk_bytes is not None and moves.disk_gb:
        disk += f" ({moves.disk_bytes:,} bytes used)"
    things = ", ".join([disk, _count(len(moves.volumes), "volume"), _count(len(moves.ports), "port")])
    return "; ".join(filter(None, [things + (f" ({moves.note})" if moves.note else ""), moves.travel, moves.memory]))


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _table(found: MoveCandidates) -> Table:
    table = Table("Cell", "Host", "Verdict", "Why", "Checks there", show_lines=True)
    for candidate in found.candidates:
        verdict = "[green]fits[/]" + (", chosen" if candidate.chosen else "") if candidate.fits else "[red]no[/]"
        table.add_row(candidate.cell, candidate.host, verdict, escape(_why(candidate)), _checks(candidate))
    return table


def _why(candidate: MoveCandidate) -> str:
    if candidate.fits:
        weights = [f"{name.removesuffix('Weigher')} {value:g}" for name, value in candidate.weights.items() if value]
        return f"{candidate.recipe}; weight {candidate.weight or 0:g}" + (f": {', '.join(weights)}" if weights else "")
    compared = [f"{name}: {value}" for name, value in candidate.values.items()]
    if candidate.needs is not None:
        compared += [f"needs {candidate.needs}", f"{candidate.free} free"]
    return f"{candidate.refused_by}: {candidate.reason}" + (f" ({', '.join(compared)})" if compared else "")


def _checks(candidate: MoveCandidate) -> str:
    return "\n".join([_check(each) for each in candidate.checks] + ([escape(candidate.note)] if candidate.note else []))


def _check(check: PreCheck) -> str:
    return f"{check.name}: {VERDICTS[check.passed]}" + (f" ({escape(check.message)})" if check.message else "")
