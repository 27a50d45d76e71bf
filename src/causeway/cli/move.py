"""``causeway move``: what `causeway operation` tells, of moves only; and what they left on hosts."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from causeway.cli.timelines import add_commands, database_option, json_option, open_journal, state_dir_option
from causeway.moves.recipes import RECIPES
from causeway.store.api import leftovers


@click.group()
def move() -> None:
    """Look at moves of servers: where they are, what they did. `causeway operation` tells of everything that takes long."""


add_commands(move, "move", RECIPES)


@move.command("leftovers")
@state_dir_option
@database_option
@json_option
def list_leftovers(state_dir: Path, database: str | None, as_json: bool) -> None:
    """What is left on hosts that were forced down, and is cleaned when they come back."""
    found = leftovers.listed(open_journal(state_dir, database))
    rows = [(each.host, each.instance_uuid, each.what, str(each.created_at)) for each in found]
    if as_json:
        click.echo(
            json.dumps([dict(zip(("host", "server", "missed", "since"), row, strict=True)) for row in rows], indent=2)
        )
        return
    table = Table("Host", "Server", "Missed", "Since")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
