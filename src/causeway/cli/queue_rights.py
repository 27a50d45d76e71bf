"""``causeway manage queue``: what accounts of computes may do in RabbitMQ, and keys that say who sent a message."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from causeway import durable
from causeway.cli.nova_names import NovaNames
from causeway.errors import Misconfigured
from causeway.rpc.keys import CONTROL, HOSTS, make_pair
from causeway.rpc.rights import PROCESS, of_compute


@click.group(cls=NovaNames)
def queue() -> None:
    """Message queues of cells: accounts of their hosts, and keys for signatures."""


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


@queue.command("make-key")
@click.argument("kind", type=click.Choice(["control", "host"]))
@click.argument("name")
@click.option(
    "--directory",
    default="/etc/causeway/keys",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the keys are kept.",
)
def make_key(kind: str, name: str, directory: Path) -> None:
    """Make the key with which a service signs its messages, and the public one for those who are to trust it.

    KIND is host for a compute, whose NAME is its `host` option, and control for services of the control plane. Replaces nothing.
    If only the private key is there, makes the public one of it.
    """
    if not name or "/" in name or name.startswith("."):
        raise click.BadParameter(f"{name!r} can't be the name of a file.", param_hint="NAME")
    folder = HOSTS if kind == "host" else CONTROL
    private, public = (directory / part / folder / f"{name}.pem" for part in ("private", "trusted"))
    try:
        durable.make_folder(private.parent, mode=0o750)
        durable.make_folder(public.parent, mode=0o755)
        make_pair(private, public)
    except FileExistsError as failure:
        raise click.ClickException(f"{failure}. Give another --directory for a key that is to replace it.") from failure
    except Misconfigured as failure:
        raise click.ClickException(failure.message) from failure
    except OSError as failure:
        raise click.ClickException(f"The key can't be written: {failure}") from failure
    click.echo(f"private key: {private}")
    click.echo(f"public key: {public}")
