"""``causeway operation``: shows the progress of everything that takes long and what hosts are to clean up; cancels operations."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from causeway.cli import ask, tables
from causeway.cli.timelines import Operation, show_overview, show_timeline


@click.group()
def operation() -> None:
    """Show everything that takes long (moves, images, rebuilds, shelving, ...): its progress, and what it waits for."""


@operation.command("list")
@ask.state_dir_option
@ask.os_cloud_option
@ask.timeout_option
@ask.json_option
@click.option("--all", "everything", is_flag=True, help="Ended operations too.")
@click.option("--server", help="Only those of a server (name or id).")
@click.option("--recipe", "recipes", multiple=True, help="Only those of this kind, such as resize. May be repeated.")
def list_operations(
    state_dir: Path,
    os_cloud: str | None,
    timeout: float,
    as_json: bool,
    everything: bool,
    server: str | None,
    recipes: tuple[str, ...],
) -> None:
    """Operations that have not ended (or all of them), oldest first."""
    connection = ask.connect(state_dir, os_cloud)
    server_id = None if server is None else ask.id_of_server(connection, server, timeout)
    found = _search(connection, timeout, server=server_id, recipes=recipes, everything=everything)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        show_overview(found, tables.console())


@operation.command()
@click.argument("wanted", metavar="OPERATION|SERVER")
@ask.state_dir_option
@ask.os_cloud_option
@ask.timeout_option
@ask.json_option
def show(wanted: str, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """The timeline of one operation (id), or of every operation of a server (name or id).

    Each step, where, how often, how long (the last attempt), how many bytes; and what it waits for.
    """
    connection = ask.connect(state_dir, os_cloud)
    one = ask.operation(connection, wanted, timeout)
    if one is not None:
        found = [one]
    else:
        found = _search(connection, timeout, server=ask.id_of_server(connection, wanted, timeout), everything=True)
    if not found:
        raise click.ClickException(f"The journal knows no operation of server {wanted}.")
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for each in found:
        show_timeline(each, tables.console())


def _search(
    connection: Any, timeout: float, *, server: str | None, everything: bool, recipes: Collection[str] = ()
) -> list[Operation]:
    """The operations, oldest first."""
    query = {"all": "1" if everything else None, "server": server, "recipe": sorted(recipes) or None}
    return ask.pages(connection, "/os-causeway/operations", "operations", timeout=timeout, **query)[::-1]


@operation.command("cleanups")
@ask.state_dir_option
@ask.os_cloud_option
@ask.timeout_option
@ask.json_option
def list_cleanups(state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """List what is left on hosts that were forced down, and is cleaned up when they return."""
    connection = ask.connect(state_dir, os_cloud)
    found = ask.ask(connection, "/os-causeway/cleanups", timeout=timeout)["cleanups"]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [[each["host"], each["server"], each["missed"], each["since"]] for each in found]
    tables.show(tables.console(), ("Host", "Server", "Missed", "Since"), rows)


@operation.command()
@click.argument("wanted", nargs=-1, required=True, metavar="OPERATION|SERVER...")
@ask.state_dir_option
@ask.os_cloud_option
@ask.timeout_option
def cancel(wanted: tuple[str, ...], state_dir: Path, os_cloud: str | None, timeout: float) -> None:
    """Cancel operations (ids), or what is being done with servers (names or ids), if that can still be undone.

    Exit status: 0 if all is going to be undone, 1 if for one nothing is being done or it is too late, 2 if the cloud could not
    be asked.
    """
    connection = ask.connect(state_dir, os_cloud)
    status = 0
    for one in wanted:
        try:
            _cancel(connection, one, timeout)
        except (TooLate, ask.NotAsked) as failure:
            status = max(status, failure.exit_code)
            failure.show()
    sys.exit(status)


class TooLate(click.ClickException):
    """There is nothing to cancel, or nothing any more."""


def _cancel(connection: Any, wanted: str, timeout: float) -> None:
    found = ask.operation_at_work(connection, wanted, timeout)
    if found is None:
        raise TooLate(f"Nothing is being done with server {wanted}.")
    try:
        ask.ask(connection, f"/os-causeway/operations/{found['id']}", method="DELETE", timeout=timeout)
    except ask.Refused as refusal:
        if refusal.status != 409:
            raise
        raise TooLate(f"Too late: {refusal.reason}") from refusal
    undone = f"{found['recipe']} of server {found['instance_uuid']} is going to be undone"
    click.echo(f"{undone}: see `causeway operation show {found['id']}`.")
