"""``causeway audit``: whether everything that knows of servers agrees.

Asks a running cloud over its API (``/os-causeway/audit``, administrators only): only the cloud itself reaches its hosts and
queues. With ``--config-file`` this process audits, with the databases and queues that the configuration names: then neither
an API nor a conductor needs to run.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.markup import escape

from causeway.cli import extras, tables
from causeway.cli.ask import NotAsked, ask, connect, os_cloud_option, state_dir_option
from causeway.model.audit import Disagreement, Report, Severity
from causeway.openstack_plugin import words

PATH = "/os-causeway/audit"
COLORS = {Severity.CRITICAL: "bold red", Severity.ERROR: "red", Severity.WARNING: "yellow"}


@dataclass(frozen=True)
class AuditScope:
    """Where a server is to be mapped."""

    server: str
    cell: str
    host: str


@click.command()
@state_dir_option
@os_cloud_option
@click.option("--config-file", multiple=True, help="Audit from this process, with these options.")
@click.option("--fix", is_flag=True, help="Fix what is safe, and say what is left.")
@click.option(
    "--map-server", "server", help="Map this server (uuid) again to --cell and --host, where its only guest is."
)
@click.option("--cell", help="With --map-server: the cell, by name or uuid.")
@click.option("--host", help="With --map-server: the host.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@click.option("--timeout", default=1800.0, show_default=True, help="Seconds to wait for the audit's end.")
def audit(
    state_dir: Path,
    os_cloud: str | None,
    config_file: tuple[str, ...],
    fix: bool,
    server: str | None,
    cell: str | None,
    host: str | None,
    as_json: bool,
    timeout: float,
) -> None:
    """Compare all records, other services and hypervisors, and list where they disagree.

    With --map-server: a server that the API does not know any more (its mapping was lost) is mapped to the cell and host
    where its only guest and disks are. All hosts are checked first; nothing is changed if another one has anything of it.

    Exit status: 0 if all agree, 1 if not, 2 if the cloud or a part of it could not be asked.
    """
    place = None
    if server is not None:
        if cell is None or host is None or fix:
            raise click.UsageError("--map-server needs --cell and --host, and goes without --fix.")
        place = AuditScope(server, cell, host)
    if config_file:
        report = audit_from_here(config_file, fix, place)
    else:
        report = _over_the_api(state_dir, os_cloud, fix, timeout, place)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(report) | {"is_clean": report.is_clean}, indent=2))
    else:
        show(report, tables.console())
    sys.exit(exit_status(report))


def exit_status(report: Report) -> int:
    if report.disagreements:
        return 1
    return 2 if report.unreached else 0


def _over_the_api(
    state_dir: Path, os_cloud: str | None, fix: bool, timeout: float, place: AuditScope | None = None
) -> Report:
    cloud = connect(state_dir, os_cloud)
    if place is not None:
        path = f"{PATH}/servers/{place.server}"
        body = ask(cloud, path, method="POST", timeout=timeout, cell=place.cell, host=place.host)
    else:
        body = ask(cloud, PATH, method="POST" if fix else "GET", timeout=timeout)
    return msgspec.convert(body["audit"], Report)


def audit_from_here(config_files: tuple[str, ...], fix: bool, place: AuditScope | None = None) -> Report:
    extras.require("database", "An audit from here (--config-file)")
    from causeway import errors
    from causeway.audit import AuditServices, audit_cloud
    from causeway.audit.remap import map_server
    from causeway.cli import databases
    from causeway.clients.placement.client import remote_placement
    from causeway.conf import new_config
    from causeway.roles.surroundings import make_surroundings
    from causeway.rpc.compute import ComputeClient
    from causeway.store.cells import Cells

    conf = new_config(config_files=config_files)
    if not conf.api_database.connection:
        raise NotAsked("[api_database] connection is not set in these files.")
    api = databases.api_database(conf)
    around = make_surroundings(conf, remote_placement(conf))
    cells = Cells(api)

    def computes(cell_uuid: str) -> ComputeClient:
        return ComputeClient(around.transports.get(cells.mapping(cell_uuid).transport_url))

    services = AuditServices(
        conf, api, cells, computes, around.placement, around.images, around.network, around.volumes
    )
    try:
        if place is not None:
            return map_server(services, uuid=place.server, cell=place.cell, host=place.host)
        return audit_cloud(services, fix=fix)
    except errors.CausewayError as failure:
        raise NotAsked(f"{failure.message} {failure.details}".strip()) from failure
    finally:
        cells.close()
        api.close()
        around.close()


def show(report: Report, console: Console) -> None:
    """Prints the report."""
    if report.fixed:
        _show_table("Fixed", report.fixed, console)
    if report.disagreements:
        _show_table("Disagreements", report.disagreements, console)
    for missing in report.unreached:
        console.print(f"[yellow]Not asked:[/] {missing}")
    if report.in_motion:
        console.print(f"In motion, and therefore not judged: {', '.join(report.in_motion)}")
    looked = ", ".join(f"{count} {name}" for name, count in report.counts.items())
    console.print(f"Looked at {looked} in {report.seconds:.1f} s.")
    if report.is_clean:
        console.print("[green]All agree.[/]")
    else:
        console.print(f"[red]{len(report.disagreements)} disagreements[/], {len(report.fixed)} fixed.")


def _show_table(title: str, disagreements: list[Disagreement], console: Console) -> None:
    ordered = sorted(disagreements, key=lambda each: (list(Severity).index(each.severity), each.kind))
    rows = [
        [
            f"[{COLORS[found.severity]}]{found.kind}[/]",
            found.server,
            escape(found.message),
            escape(words.fix(msgspec.to_builtins(found), fixed=title == "Fixed")),
        ]
        for found in ordered
    ]
    tables.show(console, ("Kind", "Server", "What", "Fix"), rows, folded=("What", "Fix"), title=title, lines=True)
