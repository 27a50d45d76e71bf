"""``causeway audit``: whether everything that knows of servers agrees.

Asks a running cloud over its API (``/os-causeway/audit``, administrators only): what is on hosts and in queues can only be
reached from within. With ``--config-file`` it is done in this process instead, on the databases and queues that the
configuration names: then no API and no conductor needs to run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Column, Table

from causeway.cli.ask import NotAsked, ask, connect
from causeway.cli.up import DEFAULT_STATE_DIR
from causeway.model.audit import Disagreement, Report, Severity

PATH = "/os-causeway/audit"
COLORS = {Severity.CRITICAL: "bold red", Severity.ERROR: "red", Severity.WARNING: "yellow"}


@click.command()
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STATE_DIR,
    show_default=True,
    help="The state directory of a cloud that `causeway up` runs.",
)
@click.option("--os-cloud", help="An administrator's cloud of clouds.yaml, for a cloud of many processes.")
@click.option("--config-file", multiple=True, help="Audit from this process, with these options.")
@click.option("--fix", is_flag=True, help="Mend what is safe, and say what is left.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@click.option("--timeout", default=1800.0, show_default=True, help="Seconds to wait for the audit's end.")
def audit(
    state_dir: Path, os_cloud: str | None, config_file: tuple[str, ...], fix: bool, as_json: bool, timeout: float
) -> None:
    """Hold all records, services around and hypervisors against each other, and list where they disagree.

    Exit status: 0 if all agree, 1 if not, 2 if the cloud or a part of it could not be asked.
    """
    if config_file:
        report = _from_here(config_file, fix)
    else:
        report = _over_the_api(state_dir, os_cloud, fix, timeout)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(report) | {"is_clean": report.is_clean}, indent=2))
    else:
        show(report, Console())
    sys.exit(exit_status(report))


def exit_status(report: Report) -> int:
    if report.disagreements:
        return 1
    return 2 if report.unreached else 0


def _over_the_api(state_dir: Path, os_cloud: str | None, fix: bool, timeout: float) -> Report:
    body = ask(connect(state_dir, os_cloud), PATH, method="POST" if fix else "GET", timeout=timeout)
    return msgspec.convert(body["audit"], Report)


def _from_here(config_files: tuple[str, ...], fix: bool) -> Report:
    from causeway import errors, roles
    from causeway.audit import AuditServices, audit_cloud
    from causeway.clients.placement.client import remote_placement
    from causeway.conf import new_config
    from causeway.rpc.compute import ComputeClient
    from causeway.store.cells import Cells
    from causeway.store.database import Database

    conf = new_config(config_files=config_files)
    if not conf.api_database.connection:
        raise NotAsked("[api_database] connection is not set in these files.")
    around = roles.surroundings(conf, remote_placement(conf))
    api = Database(conf.api_database.connection, "the API", synchronous=conf.api_database.sqlite_synchronous)
    cells = Cells(api)

    def computes(cell_uuid: str) -> ComputeClient:
        return ComputeClient(around.transports.get(cells.mapping(cell_uuid).transport_url))

    services = AuditServices(
        conf, api, cells, computes, around.placement, around.images, around.network, around.volumes
    )
    try:
        return audit_cloud(services, fix=fix)
    except errors.CausewayError as failure:
        raise NotAsked(f"{failure.message} {failure.details}".strip()) from failure
    finally:
        cells.close()
        api.close()
        around.close()


def show(report: Report, console: Console) -> None:
    """The report for people."""
    if report.mended:
        console.print(_table("Mended", report.mended))
    if report.disagreements:
        console.print(_table("Disagreements", report.disagreements))
    for missing in report.unreached:
        console.print(f"[yellow]Not asked:[/] {missing}")
    if report.in_motion:
        console.print(f"In motion, nothing can be said of them: {', '.join(report.in_motion)}")
    looked = ", ".join(f"{count} {name}" for name, count in report.counts.items())
    console.print(f"Looked at {looked} in {report.seconds:.1f} s.")
    if report.is_clean:
        console.print("[green]All agree.[/]")
    else:
        console.print(f"[red]{len(report.disagreements)} disagreements[/], {len(report.mended)} mended.")


def _table(title: str, disagreements: list[Disagreement]) -> Table:
    table = Table(
        Column("Kind", no_wrap=True), "Server", "What", "Mend", title=title, title_justify="left", show_lines=True
    )
    for found in sorted(disagreements, key=lambda each: (list(Severity).index(each.severity), each.kind)):
        if found.left:
            mend = found.left
        elif found.fix is not None:
            mend = (
                "--fix: " + found.fix.action.replace("_", " ")
                if title != "Mended"
                else found.fix.action.replace("_", " ")
            )
        else:
            mend = ""
        table.add_row(f"[{COLORS[found.severity]}]{found.kind}[/]", found.server or "", found.message, mend)
    return table
