"""``causeway adopt host`` and ``status``: hosts on their way from Nova."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from causeway.cli import processes
from causeway.cli.adopt.group import adopt
from causeway.cli.adopt.nova_config import nova_config_option
from causeway.cli.adopt.services import adopt_services
from causeway.cli.adopt.shown import as_json_text, json_option, printable
from causeway.model.adoption import AdoptedHost, Finding, HostState

if TYPE_CHECKING:
    from causeway.hosts.adoption import CellStatus


@adopt.command()
@processes.config_file_option
@click.argument("hosts", nargs=-1)
@click.option("--cell", help="All hosts of a cell, by its name or uuid.")
@click.option("--at-a-time", default=1, show_default=True, type=click.IntRange(1, 64), help="Hosts at the same time.")
@click.option("--only-look", is_flag=True, help="Compare, and take nothing: also beside a living Nova.")
@nova_config_option(
    "A nova.conf of a role that has Nova's databases: they say whether nova-compute is off.", required=False
)
@json_option
def host(
    config_files: tuple[Path, ...],
    hosts: tuple[str, ...],
    cell: str | None,
    at_a_time: int,
    only_look: bool,
    nova_files: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Take HOSTS from Nova: their guests run on, and Causeway's compute services carry out orders from now on.

    Nova's records must have been imported, nova-compute must be off there, and `causeway compute` must run with [adopt]
    nova_state_path. What is found on a host is compared with the records; a host with a difference that blocks stays Nova's. May
    be repeated. Needs [api_database] and the credentials of a conductor.

    Exit status: 0 if all are taken (or, with --only-look, if nothing blocks), else 1.
    """
    if bool(hosts) is (cell is not None):
        raise click.UsageError("Name hosts, or a --cell.")
    with adopt_services(config_files, nova_files) as services:
        from causeway.adopt.hosts import records, taking

        named: Sequence[str] = hosts if cell is None else records.hosts_of(services.cells, cell)
        done = []
        for adopted in taking.adopt_hosts(services, named, at_a_time=at_a_time, take=not only_look):
            done.append(adopted)
            if not as_json:
                _show_host(adopted, only_look=only_look)
    if as_json:
        click.echo(as_json_text(done))
    sys.exit(0 if all(_is_well(adopted, only_look=only_look) for adopted in done) else 1)


@adopt.command()
@processes.config_file_option
@json_option
def status(config_files: tuple[Path, ...], as_json: bool) -> None:
    """Show cells, their hosts and how far these are, the servers there, and what blocks."""
    with adopt_services(config_files, ()) as services:
        from causeway.hosts import adoption

        cells = adoption.read(services.cells)
    if as_json:
        click.echo(as_json_text(cells))
    else:
        _show_cells(cells)


def _is_well(adopted: AdoptedHost, *, only_look: bool) -> bool:
    return (only_look or adopted.state is HostState.TAKEN) and not any(finding.blocks for finding in adopted.findings)


def _show_host(adopted: AdoptedHost, *, only_look: bool) -> None:
    well = _is_well(adopted, only_look=only_look)
    click.echo(f"{adopted.host}: {adopted.state}{'' if well else ', blocked'}")
    for line in _of_findings(adopted.findings):
        click.echo(f"  {line}")


def _of_findings(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in sorted(findings, key=lambda each: not each.blocks):
        kind = "blocks" if finding.blocks else "differs"
        yield printable(f"{kind} {finding.kind} {finding.subject}: {finding.what} {finding.remedy}".rstrip())


def _show_cells(cells: Sequence[CellStatus]) -> None:
    # Only here: hosts have no such library.
    from rich.markup import escape

    from causeway.cli import tables

    rows = []
    for cell in cells:
        for each in cell.hosts:
            servers = "?" if each.servers is None else str(each.servers)
            rows.append([escape(cell.name), escape(each.host), each.state or "-", servers, str(len(each.blocking))])
    tables.show(tables.console(), ("Cell", "Host", "State", "Servers", "Blocks"), rows)
    for cell in cells:
        for each in cell.hosts:
            for line in _of_findings(each.blocking):
                click.echo(f"{each.host}: {line}")


__all__ = ["host", "status"]
