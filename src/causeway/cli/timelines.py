"""What `causeway operation` and `causeway move` share: operations with their steps, read from the journal."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from causeway.cli.up import DEFAULT_STATE_DIR
from causeway.embedded.settings import StateDir
from causeway.model.operations import Operation
from causeway.model.progress import OperationProgress, StepProgress, Wait, progress_of, reason_of, text_of
from causeway.model.sagas import StepRecord
from causeway.store.api import journal, operations
from causeway.store.database import Database, utcnow

state_dir_option = click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STATE_DIR,
    show_default=True,
    help="The cloud's state directory.",
)
database_option = click.option("--database", help="URL of the API database, for a cloud of many processes.")
json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")


def open_journal(state_dir: Path, database: str | None) -> Database:
    """The API database of a cloud. Raises ClickException."""
    url = database or StateDir(state_dir).database("api")
    if database is None and not Path(url.removeprefix("sqlite:///")).exists():
        raise click.ClickException(f"There is no cloud in {state_dir}: give --state-dir or --database.")
    return Database(url, "the API")


def add_commands(group: click.Group, what: str, recipes: Collection[str] | None) -> None:
    """Adds the commands ``list`` and ``show`` to a group. ``what``: the name of one run of ``recipes`` (None: of any)."""

    @group.command("list", help=f"{what.title()}s that have not ended (or all of them), oldest first.")
    @state_dir_option
    @database_option
    @json_option
    @click.option("--all", "everything", is_flag=True, help=f"Ended {what}s too.")
    @click.option("--server", help="Only those of a server (its uuid).")
    def list_them(state_dir: Path, database: str | None, as_json: bool, everything: bool, server: str | None) -> None:
        api = open_journal(state_dir, database)
        found = operations.search(api, instance_uuid=server, recipes=recipes, with_ended=everything)[::-1]
        if as_json:
            click.echo(json.dumps([_summary(each, steps) for each, steps in found], indent=2))
        else:
            Console().print(_overview(what, [(each, progress_of(each, steps, utcnow())) for each, steps in found]))

    @group.command(
        "show",
        help=f"The timeline of every {what} of SERVER (its uuid): each step, where, how often, how long (the last attempt), "
        "how many bytes; and what it waits for.\n\nWith --json also the events of the server's actions that its steps made, "
        "with the ends of tracebacks.",
    )
    @click.argument("server")
    @state_dir_option
    @database_option
    @json_option
    def show(server: str, state_dir: Path, database: str | None, as_json: bool) -> None:
        api = open_journal(state_dir, database)
        found = operations.search(api, instance_uuid=server, recipes=recipes, with_ended=True)[::-1]
        if not found:
            raise click.ClickException(f"The journal knows no {what} of server {server}.")
        # With their events.
        timelines = [(each, journal.steps(api, each.id)) for each, _steps in found]
        if as_json:
            click.echo(json.dumps([_whole(each, steps) for each, steps in timelines], indent=2))
            return
        for each, steps in timelines:
            Console().print(_timeline(each, steps))


def _overview(what: str, found: list[tuple[Operation, OperationProgress]]) -> Table:
    table = Table(what.title(), "Server", "Recipe", "State", "Step", "Bytes", "Started", "Owner", "Error")
    for each, progress in found:
        table.add_row(
            each.id,
            each.instance_uuid,
            each.recipe,
            _standing(progress),
            progress.step or "",
            _bytes(progress),
            str(each.started_at),
            each.owner or "",
            escape(reason_of(each)),
        )
    return table


def _timeline(found: Operation, steps: list[StepRecord]) -> Table:
    progress = progress_of(found, steps, utcnow())
    title = f"{found.recipe} of {found.instance_uuid}: {_standing(progress)}"
    if reason_of(found):
        title += f". {escape(reason_of(found))}"
    table = Table("Step", "Phase", "Where", "State", "Attempts", "Seconds", "Bytes", "Error", title=title)
    for step, shown in zip(steps, progress.steps, strict=True):
        table.add_row(
            step.step,
            step.phase,
            step.host or "records",
            step.state,
            str(step.attempt),
            f"{step.seconds:.3f}" if step.seconds is not None else "running",
            _bytes(shown),
            escape(_errors(step)),
        )
    return table


def _standing(progress: OperationProgress) -> str:
    """An operation's state, and what it waits for."""
    if progress.waits_for is None:
        return (
            f"{progress.state}, to be cancelled"
            if progress.is_cancel_requested and progress.is_cancellable
            else (str(progress.state))
        )
    return f"{progress.state}, {_waiting(progress.waits_for)}"


def _waiting(wait: Wait) -> str:
    host = f" for {wait.host}" if wait.host is not None else ""
    until = f" until {wait.until:%H:%M:%S} UTC" if wait.until is not None else ""
    return f"waits{host}{until}"


def _bytes(shown: OperationProgress | StepProgress) -> str:
    """How many of how many, in which round, and how long that takes yet; of what has ended: how many it were."""
    if shown.bytes_done is None:
        return ""
    text = f"{shown.bytes_done:,}"
    if shown.ended_at is not None:
        return text + (f" in {shown.round} rounds" if shown.round is not None and shown.round > 1 else "")
    text += f" of {shown.bytes_total:,} ({shown.percent} %)" if shown.bytes_total else ""
    text += f", round {shown.round}" if shown.round is not None else ""
    return text + (f", about {shown.seconds_left} s left" if shown.seconds_left is not None else "")


def _errors(step: StepRecord) -> str:
    """The last error, and the first one if that was another."""
    last, first = text_of(step.error), text_of(step.first_error)
    return last if first in ("", last) else f"{last} At first: {first}"


def _summary(found: Operation, steps: list[StepRecord]) -> dict[str, Any]:
    """What the journal's row says but for what the operation remembers, and how far it has come."""
    row: dict[str, Any] = msgspec.to_builtins(found)
    del row["data"]
    progress: dict[str, Any] = msgspec.to_builtins(progress_of(found, steps, utcnow()))
    return row | progress | {"waits_until": msgspec.to_builtins(found.waits_until)}


def _whole(found: Operation, steps: list[StepRecord]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = msgspec.to_builtins(steps)
    summary = _summary(found, steps)
    progress: list[dict[str, Any]] = summary["steps"]
    return summary | {"steps": [row | shown for row, shown in zip(rows, progress, strict=True)]}
