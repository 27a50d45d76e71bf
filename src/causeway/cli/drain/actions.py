"""``causeway drain create``, and the commands that change a drain: each asks the API, and returns at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.markup import escape

from causeway.cli import ask, tables
from causeway.cli.aliases import hidden
from causeway.cli.ask import json_option
from causeway.cli.drain.group import PATH, PLAN_TIMEOUT, drain, of_a_cloud, of_one_drain, path_of, sentence
from causeway.cli.drain.request import limit_options, limits_of, request_of, request_options
from causeway.model.drains import Limits


@drain.command()
@click.argument("name")
@request_options
@of_a_cloud
@json_option
def create(name: str, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool, **given: Any) -> None:
    """Plan a drain and store it with its plan. Nothing moves before it is started."""
    connection = ask.connect(state_dir, os_cloud)
    body = request_of(connection, name, timeout, given)
    answer = ask.ask(connection, PATH, method="POST", body=body, timeout=max(timeout, PLAN_TIMEOUT))
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    plan = answer["plan"]
    console = tables.console()
    for note in plan["notes"]:
        console.print(f"[yellow]{escape(note)}[/]")
    console.print(f"[bold]{escape(plan['summary'])}[/]")
    click.echo(
        f"It is planned as {answer['drain']['id']}: `causeway drain show {name}`, `causeway drain start {name}`."
    )


@drain.command()
@of_one_drain
@json_option
def start(wanted: str, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """Let a planned drain begin."""
    _act(wanted, {"start": None}, state_dir, os_cloud, timeout, as_json)


@drain.command()
@of_one_drain
@json_option
def pause(wanted: str, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """Begin no more moves; those under way are completed."""
    _act(wanted, {"pause": None}, state_dir, os_cloud, timeout, as_json)


@drain.command()
@of_one_drain
@json_option
def resume(wanted: str, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """Resume a paused drain."""
    _act(wanted, {"resume": None}, state_dir, os_cloud, timeout, as_json)


@drain.command()
@of_one_drain
@click.option("--undo", is_flag=True, help="Undo moves under way, where that is still possible.")
@json_option
def cancel(wanted: str, undo: bool, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """End a drain, and open the hosts that it had closed. Moves under way are completed, or undone."""
    _act(wanted, {"cancel": {"undo": undo}}, state_dir, os_cloud, timeout, as_json)


@drain.command()
@of_one_drain
@json_option
def rollback(wanted: str, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """End a drain, undo moves under way, and revert those that wait to be confirmed."""
    _act(wanted, {"rollback": None}, state_dir, os_cloud, timeout, as_json)


@drain.command("set")
@of_one_drain
@limit_options
@json_option
def set_limits(
    wanted: str, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool, **given: int | None
) -> None:
    """Change how many moves of a drain may run at once, also while it runs; without options: show that.

    Limits that are not named stay as they are.
    """
    connection = ask.connect(state_dir, os_cloud)
    path, changes = path_of(connection, wanted, timeout), limits_of(given)
    if changes:
        shown = ask.ask(connection, path, method="PUT", body={"drain": {"limits": changes}}, timeout=timeout)
    else:
        shown = ask.ask(connection, path, timeout=timeout)
    found = msgspec.to_builtins(msgspec.convert(shown["drain"]["request"]["limits"], Limits))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [[name.replace("_", " "), "-" if value is None else str(value)] for name, value in found.items()]
    tables.show(tables.console(), ("Limit", "At most"), rows)


# The name of release 0.1.
drain.add_command(hidden(set_limits), "limits")


@drain.command()
@of_one_drain
def delete(wanted: str, state_dir: Path, os_cloud: str | None, timeout: float) -> None:
    """Delete the record of a drain that has ended, or never began. What it moved stays where it is."""
    connection = ask.connect(state_dir, os_cloud)
    ask.ask(connection, path_of(connection, wanted, timeout), method="DELETE", timeout=timeout)
    click.echo(f"Drain {wanted} is deleted.")


def _act(
    wanted: str, body: Mapping[str, Any], state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool
) -> None:
    connection = ask.connect(state_dir, os_cloud)
    path = f"{path_of(connection, wanted, timeout)}/action"
    shown = ask.ask(connection, path, method="POST", body=body, timeout=timeout)["drain"]
    click.echo(json.dumps(shown, indent=2) if as_json else sentence(shown))
