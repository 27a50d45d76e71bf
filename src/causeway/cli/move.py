"""``causeway move``: what moves did, read from the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from causeway.cli.up import DEFAULT_STATE_DIR
from causeway.embedded.settings import StateDir
from causeway.model.moves import Move
from causeway.model.sagas import StepRecord
from causeway.store.api import journal, leftovers
from causeway.store.database import Database

state_dir_option = click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STATE_DIR,
    show_default=True,
    help="The cloud's state directory.",
)
database_option = click.option("--database", help="URL of the API database, for a cloud of many processes.")
json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")


@click.group()
def move() -> None:
    """Look at moves of servers: where they are, what they did."""


def _open(state_dir: Path, database: str | None) -> Database:
    url = database or StateDir(state_dir).database("api")
    if database is None and not Path(url.removeprefix("sqlite:///")).exists():
        raise click.ClickException(f"There is no cloud in {state_dir}: give --state-dir or --database.")
    return Database(url, "the API")


@move.command("list")
@state_dir_option
@database_option
@json_option
@click.option("--all", "everything", is_flag=True, help="Ended moves too.")
def list_moves(state_dir: Path, database: str | None, as_json: bool, everything: bool) -> None:
    """Moves that have not ended (or all of them)."""
    api = _open(state_dir, database)
    moves = journal.all_moves(api) if everything else journal.unfinished(api)
    if as_json:
        click.echo(json.dumps([_summary(found) for found in moves], indent=2))
        return
    table = Table("Move", "Server", "Recipe", "State", "Started", "Owner", "Error")
    for found in moves:
        table.add_row(
            found.id,
            found.instance_uuid,
            found.recipe,
            standing(found),
            str(found.started_at),
            found.owner or "",
            reason(found),
        )
    Console().print(table)


@move.command("leftovers")
@state_dir_option
@database_option
@json_option
def list_leftovers(state_dir: Path, database: str | None, as_json: bool) -> None:
    """What is left on hosts that were forced down, and is cleaned when they come back."""
    found = leftovers.listed(_open(state_dir, database))
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


@move.command()
@click.argument("server")
@state_dir_option
@database_option
@json_option
def show(server: str, state_dir: Path, database: str | None, as_json: bool) -> None:
    """The timeline of every move of SERVER (its uuid): each step, where, how often, how long (the last attempt), how many bytes.

    With --json also the events of the server's actions that its steps made, with the ends of tracebacks."""
    api = _open(state_dir, database)
    moves = journal.of_server(api, server)
    if not moves:
        raise click.ClickException(f"Server {server} was never moved.")
    timelines = [(found, journal.steps(api, found.id)) for found in moves]
    if as_json:
        document = [_summary(found) | {"steps": [_step(step) for step in steps]} for found, steps in timelines]
        click.echo(json.dumps(document, indent=2))
        return
    for found, steps in timelines:
        Console().print(timeline(found, steps))


def standing(found: Move) -> str:
    """A move's state, and until when it waits."""
    if found.waits_until is None:
        return str(found.state)
    return f"{found.state}, waits until {found.waits_until:%H:%M:%S} UTC"


def reason(found: Move) -> str:
    """Why a move waits, is stuck, or failed."""
    if found.parked is not None:
        return found.parked.partition(" ")[2]
    return _whole(found.error)


def _whole(error: dict[str, Any] | None) -> str:
    """An error as administrators see it."""
    return " ".join(filter(None, ((error or {}).get(part) for part in ("message", "details"))))


def timeline(found: Move, steps: list[StepRecord]) -> Table:
    """A move as a table."""
    title = f"{found.recipe} of {found.instance_uuid}: {standing(found)}"
    if reason(found):
        title += f". {reason(found)}"
    table = Table("Step", "Phase", "Where", "State", "Attempts", "Seconds", "Bytes", "Error", title=title)
    for step in steps:
        seconds = f"{step.seconds:.3f}" if step.seconds is not None else "running"
        table.add_row(
            step.step,
            step.phase,
            step.host or "records",
            step.state,
            str(step.attempt),
            seconds,
            f"{step.bytes_done:,}" if step.bytes_done is not None else "",
            _errors(step),
        )
    return table


def _errors(step: StepRecord) -> str:
    """The last error, and the first one if that was another."""
    last, first = _whole(step.error), _whole(step.first_error)
    return last if first in ("", last) else f"{last} At first: {first}"


def _step(step: StepRecord) -> dict[str, Any]:
    known: dict[str, Any] = msgspec.to_builtins(step)
    return known | {"seconds": step.seconds}


def _summary(found: Move) -> dict[str, Any]:
    whole: dict[str, Any] = msgspec.to_builtins(found)
    waits_until = msgspec.to_builtins(found.waits_until)
    return {name: value for name, value in whole.items() if name != "data"} | {"waits_until": waits_until}
