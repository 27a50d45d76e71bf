"""``causeway drain plan``: what would happen."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.markup import escape

from causeway.cli import ask, tables
from causeway.cli.ask import json_option
from causeway.cli.drain.group import PATH, PLAN_TIMEOUT, drain, of_a_cloud
from causeway.cli.drain.request import request_of, request_options
from causeway.model.drains import DrainServer, DrainServerState, Plan, duration
from causeway.openstack_plugin import words

_WHY = "Why not; what would help"


@drain.command()
@request_options
@of_a_cloud
@json_option
def plan(state_dir: Path, os_cloud: str | None, as_json: bool, timeout: float, **given: Any) -> None:
    """Say what a drain would do: where each server would go, how, and how long it takes; or why it can't go.

    Nothing is moved, claimed or written. Exit status: 0 if all servers can go, 1 if some can't, 2 if the cloud could not be
    asked or refused.
    """
    connection = ask.connect(state_dir, os_cloud)
    body = request_of(connection, "plan", timeout, given)
    timeout = max(timeout, PLAN_TIMEOUT)
    answer = ask.ask(connection, f"{PATH}/plan", timeout=timeout, method="POST", body=body)["plan"]
    found = msgspec.convert(answer, Plan)
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    else:
        show(found, tables.console())
    sys.exit(0 if not found.blocked else 1)


def show(found: Plan, console: Console) -> None:
    """Prints the plan: each server, with those that can't go last; then the summary."""
    if found.servers:
        titles = ("Server", "From", "To", "How", "Disks", "Takes", "Stands still", _WHY)
        tables.show(console, titles, [_row(server) for server in sorted(found.servers, key=_place)], reasons=_WHY)
    for note in found.notes:
        console.print(f"[yellow]{escape(note)}[/]")
    if found.bound is not None and found.doubled is not None:
        console.print(f"What bounds it: {escape(found.bound)}; with twice as much it takes {duration(found.doubled)}.")
    console.print(f"[bold]{escape(found.summary)}[/]")


def _place(server: DrainServer) -> tuple[bool, str, str]:
    return server.state is DrainServerState.BLOCKED, server.name, server.instance_uuid


def _row(server: DrainServer) -> list[str]:
    name = f"{escape(server.name)}\n[dim]{server.instance_uuid}[/]"
    here, size = f"{server.source_cell}\n{server.source_host}", words.size(server.bytes)
    if server.state is DrainServerState.BLOCKED:
        why = escape(" ".join(filter(None, [server.why, server.help])))
        return [name, here, "[red]-[/]", "", size, "", "", why]
    how = (server.how or "").replace("_", "-")
    if server.new_flavor is not None:
        how += f"\n{escape(server.flavor or '')} -> {escape(server.new_flavor)}"
    held = "" if server.not_before is None else f"asked to wait until {server.not_before:%Y-%m-%d %H:%M} UTC"
    return [
        name,
        here,
        f"{server.target_cell}\n{server.target_host}",
        how,
        size,
        duration(server.seconds or 0.0),
        duration(server.pause or 0.0),
        held,
    ]
