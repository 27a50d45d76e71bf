"""``causeway manage queue``: what accounts of computes may do in RabbitMQ."""

from __future__ import annotations

import json
import shlex

import click

from causeway.cli.field_names import FieldNames
from causeway.rpc.rights import PROCESS, of_compute


@click.group(cls=FieldNames)
def queue() -> None:
    """Message queues of cells: accounts of their hosts."""


@queue.command()
@click.argument("host")
@click.option("--account", required=True, help="The account of this host in RabbitMQ.")
@click.option(
    "--virtual-host", required=True, help="Of the cell: what follows the last slash of its transport_url (/ alone: /)."
)
@click.option("--exchange", default="openstack", show_default=True, help="[DEFAULT] control_exchange of the cell.")
@click.option("--json", "as_json", is_flag=True, help="As definitions that RabbitMQ imports.")
def rights(host: str, account: str, virtual_host: str, exchange: str, as_json: bool) -> None:
    """Print the commands that bind an account to the compute host HOST (its `host` option).

    With them the account takes orders for this host only, and calls the conductor of its cell only. Changes nothing itself:
    run what is printed where rabbitmqctl is. The host's configuration needs the lines in the comments first.
    """
    found = of_compute(host, exchange)
    if as_json:
        click.echo(json.dumps(found.definitions(account, virtual_host), indent=2))
        return
    for line in (
        "In the configuration of the host:",
        "  [oslo_messaging_rabbit]",
        "  use_queue_manager = true",
        f"  hostname = {host}",
        f"  processname = {PROCESS}",
    ):
        click.echo(f"# {line}")
    at = ["-p", virtual_host, account]
    click.echo(shlex.join(["rabbitmqctl", "set_permissions", *at, found.configure, found.write, found.read]))
    topics = [found.exchange, found.topic_write, found.topic_read]
    click.echo(shlex.join(["rabbitmqctl", "set_topic_permissions", *at, *topics]))
