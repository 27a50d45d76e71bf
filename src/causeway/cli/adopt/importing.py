"""``causeway adopt import``: Nova's records into Causeway's databases."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from causeway.cli import extras, processes
from causeway.cli.adopt.group import adopt
from causeway.cli.adopt.nova_config import OF_THE_API, nova_config_option

if TYPE_CHECKING:
    from causeway.adopt.importing import ImportReport, LeftOut

# Of what was left out, so many are named; --json names all.
_NAMED = 50


@adopt.command("import")
@nova_config_option(OF_THE_API)
@processes.config_file_option
@click.option(
    "--batch", default=500, show_default=True, type=click.IntRange(1, 5000), help="Servers in one transaction."
)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def import_(nova_files: tuple[Path, ...], config_files: tuple[Path, ...], batch: int, as_json: bool) -> None:
    """Copy Nova's records: of cells, hosts, flavors, keys, aggregates, groups, limits, and servers with their histories.

    Nova's databases are only read. Repeat it as often as you like: only what has changed since is written, and what Nova deleted
    is deleted. Servers on hosts that are Causeway's already, and what was made here, are left as they are.

    Exit status: 0 all was imported, 2 something was left out (it is named, with what to do), 1 it failed.
    """
    extras.require("database", "`causeway adopt import`")
    from causeway.adopt.importing import import_cloud
    from causeway.adopt.importing.ports import Ports
    from causeway.adopt.nova import NovaCloud, tables
    from causeway.cli import databases
    from causeway.clients.network import NetworkClient
    from causeway.clients.session import ServiceSessions
    from causeway.store.api import adopted_hosts

    with processes.failures_reported(), ExitStack() as cleanup:
        conf = processes.configuration(config_files)
        nova = cleanup.enter_context(NovaCloud(nova_files))
        api, cells = databases.api_and_cells(conf, cleanup)
        sessions = ServiceSessions(conf)
        cleanup.callback(sessions.close)
        total = sum(cell.database.count(tables.INSTANCES, tables.INSTANCES.c.deleted == 0) for cell in nova.cells)
        with click.progressbar(length=total, label="Servers", file=sys.stderr) as bar:
            report = import_cloud(
                nova,
                api,
                cells,
                Ports(NetworkClient(sessions)).complete,
                owned=adopted_hosts.owned(api),
                size=batch,
                progress=bar.update,
            )
    click.echo(_as_json(report) if as_json else _as_text(report))
    if report.left_out:
        sys.exit(2)


def _as_json(report: ImportReport) -> str:
    return json.dumps(
        {
            "unchanged": report.is_unchanged,
            "kinds": {
                kind: {
                    "read": counts.read,
                    "written": counts.written,
                    "deleted": counts.deleted,
                    "digest": f"{counts.digest:064x}",
                }
                for kind, counts in report.by_kind.items()
            },
            "ours": report.ours,
            "left_out": [
                {"kind": each.kind, "key": each.key, "name": each.name, "why": each.why} for each in report.left_out
            ],
        },
        indent=2,
    )


def _as_text(report: ImportReport) -> str:
    lines = [f"{'':<14}{'read':>9}{'written':>9}{'deleted':>9}  digest"]
    lines += [
        f"{kind:<14}{counts.read:>9}{counts.written:>9}{counts.deleted:>9}  {counts.digest:064x}"[:61]
        for kind, counts in report.by_kind.items()
    ]
    if report.ours:
        lines.append(f"Not touched: {report.ours} servers of hosts that are Causeway's, or made here.")
    if report.left_out:
        lines += ["", f"Left out ({len(report.left_out)}):", *map(_line, report.left_out[:_NAMED])]
        if len(report.left_out) > _NAMED:
            lines.append(f"  ... and {len(report.left_out) - _NAMED} more: --json names all")
    if report.is_unchanged:
        lines += ["", "Nothing had changed since the last import."]
    return "\n".join(lines)


def _line(each: LeftOut) -> str:
    name = f" ({each.name})" if each.name else ""
    return f"  {each.kind} {each.key}{name}: {each.why}"


__all__ = ["import_"]
