"""``causeway drain list`` and ``show``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from causeway.cli import ask, tables
from causeway.cli.ask import json_option
from causeway.cli.drain.group import PATH, drain, of_a_cloud, of_one_drain, path_of, sentence
from causeway.model.drains import DrainServerState
from causeway.openstack_plugin import words


@drain.command("list")
@of_a_cloud
@json_option
def list_drains(state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """List all drains, newest first."""
    found = ask.pages(ask.connect(state_dir, os_cloud), PATH, "drains", timeout=timeout)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [
        [
            shown["id"],
            escape(shown["name"]),
            shown["state"],
            words.servers_of_drain(shown),
            words.bytes_of_drain(shown),
            escape(shown["note"] or ""),
        ]
        for shown in found
    ]
    titles = ("Id", "Name", "State", "Servers", "Bytes", "Note")
    tables.show(tables.console(), titles, rows, folded=("Name", "Servers"), reasons="Note")


@drain.command()
@of_one_drain
@json_option
def show(wanted: str, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """Show the state of a drain, and each of its servers that is not done."""
    connection = ask.connect(state_dir, os_cloud)
    path = path_of(connection, wanted, timeout)
    shown = ask.ask(connection, path, timeout=timeout)["drain"]
    servers = ask.pages(connection, f"{path}/servers", "servers", timeout=timeout)
    if as_json:
        click.echo(json.dumps(shown | {"servers": servers}, indent=2))
        return
    show_drain(shown, servers, tables.console())


def show_drain(shown: dict[str, Any], servers: list[dict[str, Any]], console: Console) -> None:
    """Prints a drain, and its servers that are not done."""
    console.print(escape(sentence(shown)))
    titles = ("Server", "State", "How", "From", "To", "Why, and what would help")
    rows = [_row(server) for server in servers if server["state"] != DrainServerState.DONE]
    if rows:
        tables.show(console, titles, rows, reasons="Why, and what would help")


def _row(server: dict[str, Any]) -> list[str]:
    wait = f"It waits until {server['not_before']}." if server["not_before"] and not server["why"] else None
    return [
        f"{escape(server['name'])}\n[dim]{server['instance_uuid']}[/]",
        server["state"],
        (server["how"] or "").replace("_", "-"),
        server["source_host"],
        server["target_host"],
        escape(" ".join(filter(None, [server["why"], wait, server["help"]]))),
    ]
