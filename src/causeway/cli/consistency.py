"""``causeway manage cell verify-instance``, ``cell map-instances`` and ``placement audit``.

Options and exit statuses are nova-manage's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from causeway import errors
from causeway.audit import mapped, orphans
from causeway.cli import databases, processes
from causeway.clients.placement import PlacementClient, remote_placement

UNEXPECTED = 255
STILL_UNMAPPED, BAD_INPUT = 1, 127
AUDIT_FAILED, ORPHANS_FOUND, ORPHANS_DELETED = 1, 3, 4


@contextmanager
def _failing_with(status: int) -> Iterator[ExitStack]:
    """Reports a failure of other services in one line, and ends the command with ``status``."""
    try:
        with processes.failures_reported(), ExitStack() as cleanup:
            yield cleanup
    except click.ClickException as failure:
        failure.show()
        sys.exit(status)


@click.command("verify-instance")
@processes.config_file_option
@click.option("--uuid", required=True, help="The server.")
@click.option("--quiet", is_flag=True, help="Say nothing.")
def verify_instance(config_files: tuple[Path, ...], uuid: str, quiet: bool) -> None:
    """Say in which cell a server is, and whether that cell has it.

    Exit status: 0 it is in its cell, 1 it is not mapped, 2 its mapping names no cell, 3 it is deleted, 4 its cell no longer
    has it (it was archived), 255 that is unknown.
    """
    with _failing_with(UNEXPECTED) as cleanup:
        _api, cells = databases.api_and_cells(processes.configuration(config_files), cleanup)
        verdict, said = mapped.verify(cells, uuid)
    if not quiet:
        click.echo(said)
    sys.exit(verdict)


@click.command("map-instances")
@processes.config_file_option
@click.option("--cell_uuid", "--cell-uuid", "cell", required=True, help="The cell, by uuid or name.")
@click.option("--max-count", type=int, help="Most servers to map; all without it.")
@click.option("--reset", is_flag=True, help="Accepted for compatibility: every run looks at all servers of the cell.")
def map_instances(
    config_files: tuple[Path, ...],
    cell: str,
    max_count: int | None,
    reset: bool,  # noqa: ARG001
) -> None:
    """Map the servers of a cell that have no mapping, oldest first: after one was restored, or its mapping lost.

    Hidden copies, servers that are being moved, and those that another cell also has are reported and not mapped: see
    `causeway audit` and its --map-server, which looks at the hosts as well. Deleted servers stay without a mapping.

    Exit status: 0 all are mapped, 1 some are not, 127 bad --max-count, 255 it failed.
    """
    if max_count is not None and max_count < 1:
        click.echo("Must supply a positive value for --max-count.", err=True)
        sys.exit(BAD_INPUT)
    with _failing_with(UNEXPECTED) as cleanup:
        _api, cells = databases.api_and_cells(processes.configuration(config_files), cleanup)
        found = next((each for each in cells.mappings() if cell in (each.uuid, each.name)), None)
        if found is None:
            raise click.ClickException(f"There is no cell {cell}. See `causeway manage cell list`.")
        done = mapped.map_servers(cells, found, most=max_count)
    click.echo(f"Mapped to {found.name}: {len(done.mapped)}. Left: {done.more + len(done.left)}.")
    for uuid, why in done.left.items():
        click.echo(f"{uuid}: not mapped, {why}.", err=True)
    sys.exit(STILL_UNMAPPED if done.more or done.left else 0)


@click.group()
def placement() -> None:
    """What the Placement service holds."""


@placement.command("audit")
@processes.config_file_option
@click.option("--resource_provider", "--resource-provider", "provider", help="Only this provider, by uuid.")
@click.option("--delete", is_flag=True, help="Delete the orphaned allocations.")
@click.option("--verbose", is_flag=True, help="Print what each of them holds, and where.")
def audit_placement(config_files: tuple[Path, ...], provider: str | None, delete: bool, verbose: bool) -> None:
    """Find allocations on compute nodes whose consumer is neither a server nor a migration under way.

    Allocations of an ended migration are reported and kept if its server has none: `causeway audit --fix` returns them to it.

    Exit status: 0 there are none, 1 it failed, 3 there are some, 4 all that were found are deleted, 127 no such provider.
    """
    with _failing_with(AUDIT_FAILED) as cleanup:
        conf = processes.configuration(config_files)
        _api, cells = databases.api_and_cells(conf, cleanup)
        processes.check_placement(conf)
        client = remote_placement(conf)
        try:
            found = orphans.find(cells, client, provider)
        except errors.NotFound as missing:
            click.echo(missing.message, err=True)
            sys.exit(BAD_INPUT)
        kept = _settle(client, found, delete, verbose)
    if not found:
        click.echo("There are no orphaned allocations.")
        sys.exit(0)
    sys.exit(ORPHANS_DELETED if delete and not kept else ORPHANS_FOUND)


def _settle(client: PlacementClient, found: list[orphans.Orphan], delete: bool, verbose: bool) -> list[orphans.Orphan]:
    """Reports each orphan, deletes those that may be deleted if ``delete``, and returns the others."""
    kept = []
    for orphan in found:
        if delete and not orphan.keep:
            client.delete_allocations(orphan.consumer)
            click.echo(f"Deleted: allocations of {orphan.consumer}")
        else:
            kept.append(orphan)
            why = f" (kept: {orphan.keep}; see `causeway audit --fix`)" if orphan.keep else ""
            click.echo(f"Orphaned: allocations of {orphan.consumer}{why}")
        if verbose:
            for provider, resources in sorted(orphan.held.items()):
                amounts = ", ".join(f"{amount} {name}" for name, amount in sorted(resources.items()))
                click.echo(f"  {provider}: {amounts}")
    return kept
