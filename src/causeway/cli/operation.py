"""``causeway operation``: shows the progress of everything that takes long, and cancels it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from causeway.cli import ask
from causeway.cli.timelines import add_commands


@click.group()
def operation() -> None:
    """Show everything that takes long (moves, images, rebuilds, shelving, ...): its progress, and what it waits for."""


add_commands(operation, "operation", None)


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
