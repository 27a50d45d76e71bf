"""``causeway manage db archive-deleted-rows`` and ``purge``. Options and exit statuses are Nova's (nova-manage)."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from datetime import datetime
from pathlib import Path

import click
from oslo_utils import timeutils

from causeway import errors
from causeway.cli import databases, processes
from causeway.model.host import CellMapping
from causeway.store import archive as rows
from causeway.store.api import cells as records
from causeway.store.database import Database
from causeway.store.shadow_tables import API_ARCHIVED, PREFIX

NO_API_DATABASE, BAD_MAX_ROWS, BAD_DATE = 3, 2, 4
PURGE_BAD_ARGUMENTS, PURGE_BAD_DATE, PURGED_NOTHING = 1, 2, 3
LARGEST = 0x7FFFFFFF

before_option = click.option(
    "--before", help="Only servers that were deleted before this time, such as 2026-05-01 or 2026-05-01T12:00:00 (UTC)."
)
all_cells_option = click.option("--all-cells", is_flag=True, help="Also cell0.")
verbose_option = click.option("--verbose", is_flag=True, help="Print the number of rows of each table.")


@click.command("archive-deleted-rows")
@processes.config_file_option
@click.option("--max_rows", "--max-rows", type=int, default=1000, show_default=True, help="Most rows to move at once.")
@before_option
@click.option("--until-complete", is_flag=True, help="Repeat until nothing is left to move.")
@click.option("--sleep", type=click.IntRange(min=0), default=0, help="Seconds between two rounds of --until-complete.")
@click.option("--purge", "then_purge", is_flag=True, help="Then delete everything from the shadow tables.")
@click.option("--task-log", is_flag=True, help="Accepted for compatibility: this cloud has no task log.")
@all_cells_option
@verbose_option
def archive_deleted_rows(
    config_files: tuple[Path, ...],
    max_rows: int,
    before: str | None,
    until_complete: bool,
    sleep: int,
    then_purge: bool,
    task_log: bool,  # noqa: ARG001
    all_cells: bool,
    verbose: bool,
) -> None:
    """Move what is left of deleted servers to shadow tables, in every cell and in the API database.

    Exit status: 0 nothing was moved, 1 something was, 2 bad --max_rows, 3 no API database, 4 bad --before.
    """
    if not 0 < max_rows <= LARGEST:
        click.echo(f"Invalid value supplied for --max_rows: {max_rows}", err=True)
        sys.exit(BAD_MAX_ROWS)
    limit = _date(before, BAD_DATE)
    api, cells = _open(config_files, all_cells)
    moved: Counter[str] = Counter()
    for cell in cells:
        database = Database(cell.database_connection, cell.name)
        try:
            while True:
                left = max_rows if until_complete else max_rows - moved.total()
                if left <= 0:
                    break
                once = rows.archive(api, database, cell.uuid, max_rows=left, before=limit)
                moved += _named(cell, once)
                if not until_complete or not once:
                    break
                threading.Event().wait(sleep)
            if then_purge:
                rows.purge(database)
        finally:
            database.close()
    while True:
        once = rows.archive_never_built(api, before=limit)
        moved += Counter({f"API.{name}": count for name, count in once.items()})
        if not until_complete or not once:
            break
    if then_purge:
        rows.purge_operations(api)
    api.close()
    _report(moved, verbose, "Nothing was archived.")
    sys.exit(1 if moved else 0)


@click.command()
@processes.config_file_option
@click.option("--all", "everything", is_flag=True, help="Everything in the shadow tables.")
@before_option
@all_cells_option
@verbose_option
def purge(config_files: tuple[Path, ...], everything: bool, before: str | None, all_cells: bool, verbose: bool) -> None:
    """Delete archived rows for good, in every cell and in the API database.

    Exit status: 0 rows were deleted, 1 bad arguments, 2 bad --before, 3 there was nothing to delete.
    """
    if everything == (before is not None):
        click.echo("Give either --all or --before DATE.", err=True)
        sys.exit(PURGE_BAD_ARGUMENTS)
    limit = _date(before, PURGE_BAD_DATE)
    api, cells = _open(config_files, all_cells)
    deleted: Counter[str] = Counter()
    for cell in cells:
        database = Database(cell.database_connection, cell.name)
        try:
            once = rows.purge(database, before=limit)
        finally:
            database.close()
        deleted += Counter({f"{cell.name}.{PREFIX}{name}": count for name, count in once.items()})
    of_operations = rows.purge_operations(api, before=limit)
    deleted += Counter({f"API.{PREFIX}{name}": count for name, count in of_operations.items()})
    api.close()
    _report(deleted, verbose, "Nothing was purged.")
    sys.exit(0 if deleted else PURGED_NOTHING)


def _named(cell: CellMapping, moved: Counter[str]) -> Counter[str]:
    """The counts, with the name of its database in front of each table."""
    return Counter({f"{'API' if name in API_ARCHIVED else cell.name}.{name}": rows for name, rows in moved.items()})


def _date(text: str | None, status: int) -> datetime | None:
    if text is None:
        return None
    try:
        found: datetime = timeutils.normalize_time(timeutils.parse_isotime(text))
        return found
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        click.echo(f"Invalid value supplied for --before: {text}", err=True)
        sys.exit(status)


def _open(config_files: tuple[Path, ...], all_cells: bool) -> tuple[Database, list[CellMapping]]:
    try:
        api = databases.api_database(processes.configuration(config_files))
        return api, [cell for cell in records.list_cells(api) if all_cells or not cell.is_cell0]
    except (errors.DatabaseFailed, click.ClickException) as failure:
        click.echo(f"Unable to get cell list from API DB: {failure}", err=True)
        sys.exit(NO_API_DATABASE)


def _report(counts: Counter[str], verbose: bool, nothing: str) -> None:
    if not counts:
        click.echo(nothing)
    elif verbose:
        for name, count in sorted(counts.items()):
            click.echo(f"{name}: {count}")
