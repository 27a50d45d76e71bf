"""``causeway operation``: shows the progress of everything that takes long, and cancels it."""

from __future__ import annotations

from pathlib import Path

import click

from causeway.cli import ask
from causeway.cli.timelines import add_commands
from causeway.model.sagas import NOT_ACCEPTED


@click.group()
def operation() -> None:
    """Show everything that takes long (moves, images, rebuilds, shelving, ...): its progress, and what it waits for."""


add_commands(operation, "operation", None)


@operation.command()
@click.argument("server")
@ask.state_dir_option
@ask.os_cloud_option
@ask.timeout_option
def cancel(server: str, state_dir: Path, os_cloud: str | None, timeout: float) -> None:
    """Cancel what is being done with SERVER (name or id), if it can still be undone.

    Exit status: 0 if it is going to be undone, 1 if nothing is being done or it is too late, 2 if the cloud could not be asked.
    """
    connection = ask.connect(state_dir, os_cloud)
    server_id = ask.id_of_server(connection, server, timeout)
    listed = ask.ask(connection, f"/servers/{server_id}/operations", timeout=timeout)["operations"]
    accepted = [each for each in listed if each["state"] not in NOT_ACCEPTED]
    if not accepted:
        raise click.ClickException(f"Nothing is being done with server {server}.")
    # The oldest one: others wait for its end.
    active = accepted[-1]
    try:
        ask.ask(connection, f"/operations/{active['id']}", method="DELETE", timeout=timeout)
    except ask.Refused as refusal:
        if refusal.status != 409:
            raise
        raise click.ClickException(f"Too late: {refusal.reason}") from refusal
    click.echo(
        f"{active['recipe']} of server {server_id} is going to be undone: see `causeway operation show {server_id}`."
    )
