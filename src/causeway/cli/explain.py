"""``causeway explain``: where a server could be moved to, and why not elsewhere. Changes nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from causeway.cli import ask, tables
from causeway.openstack_plugin import words

# The color of a check that passed, failed, or is unknown before the move.
COLORS = {True: "green", False: "red", None: "yellow"}


@click.command()
@click.argument("server")
@click.option("--flavor", help="The flavor to resize to, by name or id. Without it: a cold migration.")
@ask.state_dir_option
@ask.os_cloud_option
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@ask.timeout_option
def explain(
    server: str, flavor: str | None, state_dir: Path, os_cloud: str | None, as_json: bool, timeout: float
) -> None:
    """Say where SERVER (name or id) could be moved to, and why not to each of the other hosts.

    Nothing is moved, claimed or written. Exit status: 0 if a host fits, 1 if none does, 2 if the cloud could not be asked.
    """
    connection = ask.connect(state_dir, os_cloud)
    server_id = ask.id_of_server(connection, server, timeout)
    flavor_id = None if flavor is None else ask.id_of_flavor(connection, flavor, timeout)
    path = f"/os-causeway/servers/{server_id}/move-candidates"
    found = ask.ask(connection, path, timeout=timeout, flavor=flavor_id)["move_candidates"]
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        show(found, tables.console())
    sys.exit(0 if any(candidate["fits"] for candidate in found["candidates"]) else 1)


def show(found: dict[str, Any], console: Console) -> None:
    """Prints the answer: what would be moved, then each host, the best first."""
    console.print(
        f"Server [bold]{found['server']}[/], on {found['source_host']} in {found['source_cell']}, flavor {found['flavor']}"
    )
    console.print(f"Would move: {words.contents(found['moves'])}")
    if found["refusal"]:
        console.print(f"[red]The request would be refused now:[/] {escape(found['refusal'])}")
    tables.show(
        console,
        ("Cell", "Host", "Verdict", "Why", "Checks there"),
        [_row(each) for each in found["candidates"]],
        folded=("Checks there",),
        reasons="Why",
        lines=True,
    )
    for cell in found["silent_cells"]:
        console.print(f"[yellow]Cell {cell} does not answer: nothing is known of its hosts.[/]")
    console.print(escape(found["summary"]))


def _row(candidate: dict[str, Any]) -> list[str]:
    verdict = "[green]fits[/]" + (", chosen" if candidate["chosen"] else "") if candidate["fits"] else "[red]no[/]"
    return [candidate["cell"], candidate["host"], verdict, escape(words.why(candidate)), _checks(candidate)]


def _checks(candidate: dict[str, Any]) -> str:
    lines = [f"[{COLORS[each['passed']]}]{escape(words.check(each))}[/]" for each in candidate["checks"]]
    return "\n".join(lines + ([escape(candidate["note"])] if candidate["note"] else []))
