"""``causeway adopt hand-back``: hosts become Nova's again, with all that has changed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from causeway.cli import processes
from causeway.cli.adopt.group import adopt
from causeway.cli.adopt.nova_config import nova_config_option
from causeway.cli.adopt.services import adopt_services
from causeway.cli.adopt.shown import as_json_text, json_option, printable

if TYPE_CHECKING:
    from causeway.adopt.hand_back import HandedBack, Unsettled


@adopt.command("hand-back")
@processes.config_file_option
@click.argument("hosts", nargs=-1)
@click.option("--cell", help="All hosts of a cell that are Causeway's, by the cell's name or uuid.")
@click.option("--all", "every", is_flag=True, help="All hosts that are Causeway's.")
@nova_config_option(
    "The nova.conf of a role that has Nova's API database, with the right to write into Nova's databases."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be written, and what must be settled first.")
@json_option
def hand_back(
    config_files: tuple[Path, ...],
    hosts: tuple[str, ...],
    cell: str | None,
    every: bool,
    nova_files: tuple[Path, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Hand HOSTS back to Nova. Their guests run on, in the form that they have now; start nova-compute when this has ended.

    What has changed since the hosts were taken is written into Nova's databases: states, places, flavors, metadata, disks,
    ports, histories; servers that moved, also between cells; those that were made here, and those that were deleted. Servers
    that Nova could not continue with are named, with what to do, and nothing is done.

    It may be repeated until it ends with status 0. Exit status 1: something must be settled first, or it failed.
    """
    if [bool(hosts), cell is not None, every].count(True) != 1:
        raise click.UsageError("Name hosts, or a --cell, or --all.")
    with adopt_services(config_files, ()) as services:
        from causeway.adopt.hand_back import hosts as of_hosts
        from causeway.adopt.nova import NovaCloud

        named = of_hosts.chosen(services, hosts, cell)
        with NovaCloud(nova_files, writable=not dry_run) as nova:
            waiting = of_hosts.unsettled(services, nova, named)
            if waiting or dry_run:
                done = of_hosts.difference(services, nova)
            else:
                done = of_hosts.hand_back(services, nova, named)
    click.echo(
        as_json_text(_whole(named, waiting, done)) if as_json else _as_text(named, waiting, done, dry_run=dry_run)
    )
    sys.exit(1 if waiting else 0)


def _whole(named: Sequence[str], waiting: Sequence[Unsettled], done: HandedBack) -> dict[str, object]:
    return {"hosts": list(named), "unsettled": [asdict(each) for each in waiting], **asdict(done)}


def _as_text(named: Sequence[str], waiting: Sequence[Unsettled], done: HandedBack, *, dry_run: bool) -> str:
    words = (("made", done.made), ("changed", done.changed), ("moved", done.moved), ("deleted", done.deleted))
    found = ", ".join(f"{len(uuids)} {word}" for word, uuids in words)
    found += f", {done.unchanged} as they were" + "".join(
        f"; {number} of kind {kind}" for kind, number in done.things.items()
    )
    if waiting:
        lines = [f"Nothing was handed back. To be settled first ({len(waiting)}):"]
        return "\n".join([*lines, *(printable(f"  {each.uuid} ({each.name}): {each.why}") for each in waiting)])
    if dry_run:
        return f"To be written into Nova's databases: servers: {found}."
    return (
        f"Written into Nova's databases: servers: {found}.\nNova's again: {', '.join(named)}. Start nova-compute there."
    )


__all__ = ["hand_back"]
