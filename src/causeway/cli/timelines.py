"""What `causeway operation` and `causeway move` share: operations with their steps, as the API shows them."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from causeway.cli import ask, tables
from causeway.client import words

json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")

Operation = dict[str, Any]


def add_commands(group: click.Group, what: str, recipes: Collection[str] | None) -> None:
    """Adds the commands ``list`` and ``show`` to a group. ``what``: the name of one run of ``recipes`` (None: of any)."""

    @group.command("list", help=f"{what.title()}s that have not ended (or all of them), oldest first.")
    @ask.state_dir_option
    @ask.os_cloud_option
    @ask.timeout_option
    @json_option
    @click.option("--all", "everything", is_flag=True, help=f"Ended {what}s too.")
    @click.option("--server", help="Only those of a server (name or id).")
    def list_them(
        state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool, everything: bool, server: str | None
    ) -> None:
        connection = ask.connect(state_dir, os_cloud)
        server_id = None if server is None else ask.id_of_server(connection, server, timeout)
        found = _search(connection, timeout, recipes, server=server_id, everything=everything)
        if as_json:
            click.echo(json.dumps(found, indent=2))
        else:
            show_overview(what, found, tables.console())

    @group.command(
        "show",
        help=f"The timeline of one {what} (id), or of every {what} of a server (name or id): each step, where, how often, "
        "how long (the last attempt), how many bytes; and what it waits for.",
    )
    @click.argument("wanted", metavar=f"{what.upper()}|SERVER")
    @ask.state_dir_option
    @ask.os_cloud_option
    @ask.timeout_option
    @json_option
    def show(wanted: str, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
        connection = ask.connect(state_dir, os_cloud)
        one = ask.operation(connection, wanted, timeout)
        if one is not None:
            found = [one]
        else:
            server_id = ask.id_of_server(connection, wanted, timeout)
            found = _search(connection, timeout, recipes, server=server_id, everything=True)
        if not found:
            raise click.ClickException(f"The journal knows no {what} of server {wanted}.")
        if as_json:
            click.echo(json.dumps(found, indent=2))
            return
        for each in found:
            show_timeline(each, tables.console())


def _search(
    connection: Any, timeout: float, recipes: Collection[str] | None, *, server: str | None, everything: bool
) -> list[Operation]:
    """The operations, oldest first."""
    recipe = None if recipes is None else sorted(recipes)
    query = {"all": "1" if everything else None, "server": server, "recipe": recipe}
    return ask.pages(connection, "/os-causeway/operations", "operations", timeout=timeout, **query)[::-1]


def show_overview(what: str, found: list[Operation], console: Console) -> None:
    titles = (what.title(), "Server", "Recipe", "State", "Step", "Bytes", "Started", "Owner", "Error")
    rows = [
        [
            each["id"],
            each["instance_uuid"],
            each["recipe"],
            words.standing(each),
            each["step"],
            words.transferred(each),
            each["started_at"],
            escape(each["owner"] or ""),
            escape(words.reason(each)),
        ]
        for each in found
    ]
    tables.show(console, titles, rows, folded=("State", "Bytes"), reasons="Error")


def show_timeline(found: Operation, console: Console) -> None:
    title = f"{found['recipe']} of {found['instance_uuid']}: {words.standing(found)}"
    if words.reason(found):
        title += f". {escape(words.reason(found))}"
    titles = ("Step", "Phase", "Where", "State", "Attempts", "Seconds", "Bytes", "Error")
    rows = [
        [
            step["step"],
            step["phase"],
            step["host"] or "records",
            step["state"],
            str(step["attempt"]),
            f"{step['seconds']:.3f}" if step["seconds"] is not None else "running",
            words.transferred(step),
            escape(words.errors_of(step)),
        ]
        for step in found["steps"]
    ]
    tables.show(console, titles, rows, folded=("Bytes",), reasons="Error", title=title)
