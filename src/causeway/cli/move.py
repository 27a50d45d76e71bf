"""``causeway move``: what `causeway operation` shows, for moves only; and what hosts are to clean up."""

from __future__ import annotations

import json
from pathlib import Path

import click

from causeway.cli import ask, tables
from causeway.cli.timelines import add_commands, json_option
from causeway.moves.recipes import RECIPES


@click.group()
def move() -> None:
    """Look at moves of servers: where they are, what they did. `causeway operation` shows everything that takes long."""


add_commands(move, "move", RECIPES)


@move.command("cleanups")
@ask.state_dir_option
@ask.os_cloud_option
@ask.timeout_option
@json_option
def list_cleanups(state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """List what is left on hosts that were forced down, and is cleaned up when they return."""
    connection = ask.connect(state_dir, os_cloud)
    found = ask.ask(connection, "/os-causeway/cleanups", timeout=timeout)["cleanups"]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [[each["host"], each["server"], each["missed"], each["since"]] for each in found]
    tables.show(tables.console(), ("Host", "Server", "Missed", "Since"), rows)
