"""``causeway adopt finish``: the cloud is Causeway's."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import click

from causeway.cli import extras, processes
from causeway.cli.adopt.group import adopt
from causeway.cli.adopt.nova_config import OF_THE_API, nova_config_option
from causeway.cli.adopt.shown import as_json_text, json_option, printable

# Of what remains, so many of each kind are named; --json names all.
_NAMED = 20


@adopt.command()
@processes.config_file_option
@nova_config_option(OF_THE_API, required=False)
@click.option(
    "--api-url", help="Where Causeway's API is, e.g. https://compute.example.org:8774: the catalog must name it."
)
@click.option(
    "--without", multiple=True, metavar="HOST", help="A host that stays Nova's, such as a dead one. Repeatable."
)
@click.option("--undo", is_flag=True, help="Imports are possible again. Point the catalog to Nova's API first.")
@click.option("--for-good", is_flag=True, help="End the way back: nothing can be handed back any more.")
@click.option("--yes", is_flag=True, help="With --for-good: do not ask.")
@json_option
def finish(
    config_files: tuple[Path, ...],
    nova_files: tuple[Path, ...],
    api_url: str | None,
    without: tuple[str, ...],
    undo: bool,
    for_good: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Look whether all is Causeway's: hosts, servers without a host, the catalog. Then enable the cells, and audit the cloud.

    Nova must be frozen. Whatever remains is named, with what to do; run it again then. From here on imports are refused, and
    `causeway adopt hand-back` is the way back, until `finish --for-good`.

    Exit status: 0 all is done and the audit finds nothing, 1 something remains.
    """
    extras.require("database", "`causeway adopt finish`")
    from causeway.adopt import finishing
    from causeway.cli import databases
    from causeway.store.api import adoptions

    with processes.failures_reported(), ExitStack() as cleanup:
        conf = processes.configuration(config_files)
        api, cells = databases.api_and_cells(conf, cleanup)
        if undo:
            adoptions.note_unfinished(api)
            click.echo("Imports are possible again. Servers of hosts that are Causeway's stay its own: hand them back.")
            return
        if for_good:
            if not adoptions.is_finished(api):
                raise click.ClickException("It is not finished: run `causeway adopt finish` without --for-good first.")
            if not yes:
                click.confirm("Nothing can be handed back to Nova afterwards. End the way back?", abort=True)
            finishing.end_for_good(api)
            click.echo(
                "The way back is closed. Nova's databases, its services and compute_id files are yours to remove."
            )
            return
        if not nova_files or not api_url:
            raise click.UsageError("--nova-config and --api-url are needed.")
        from causeway.adopt.importing import import_cloud
        from causeway.adopt.importing.ports import Ports
        from causeway.adopt.nova import NovaCloud
        from causeway.clients.catalog import compute_endpoints
        from causeway.clients.network import NetworkClient
        from causeway.clients.session import ServiceSessions
        from causeway.store.api import adopted_hosts

        nova = cleanup.enter_context(NovaCloud(nova_files))
        sessions = ServiceSessions(conf)
        cleanup.callback(sessions.close)
        if not adoptions.is_finished(api):
            owned = adopted_hosts.owned(api)
            report = import_cloud(nova, api, cells, Ports(NetworkClient(sessions)).complete, owned=owned)
            left = finishing.remaining(cells, report, compute_endpoints(sessions), api_url, without)
            if not left.is_empty:
                _say_remaining(left.hosts, left.left_out, left.endpoints, api_url, as_json=as_json)
                sys.exit(1)
            adoptions.note_finished(api)
        enabled = finishing.enable_cells(cells, [cell.uuid for cell in nova.cells if not cell.is_cell0])
    from causeway.cli.audit import audit_from_here, exit_status, show
    from causeway.cli.tables import console

    found = audit_from_here(tuple(map(str, config_files)), fix=False)
    if as_json:
        click.echo(as_json_text({"finished": True, "enabled": enabled, "audit": found}))
    else:
        click.echo(f"All is Causeway's. Cells that take servers now: {', '.join(enabled) or 'as before'}.")
        show(found, console())
    sys.exit(exit_status(found) and 1)


def _say_remaining(hosts: list[str], left_out: list[str], endpoints: list[str], api_url: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(as_json_text({"finished": False, "hosts": hosts, "left_out": left_out, "endpoints": endpoints}))
        return
    for title, listed in (
        ("Hosts that are not Causeway's (`causeway adopt host`, or --without)", hosts),
        ("Servers that could not be imported", left_out),
        (f"Endpoints of the catalog that are not {api_url} (`openstack endpoint set --url ... ID`)", endpoints),
    ):
        if listed:
            click.echo(f"{title}: {len(listed)}")
            for each in listed[:_NAMED]:
                click.echo(printable(f"  {each}"))
            if len(listed) > _NAMED:
                click.echo(f"  ... and {len(listed) - _NAMED} more: --json names all")


__all__ = ["finish"]
