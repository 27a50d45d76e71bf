"""``causeway drain watch``: live bars for servers and bytes, until the drain ends."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from causeway.cli import ask
from causeway.cli.drain.group import counts, drain, of_one_drain, path_of, progress_of
from causeway.client import words
from causeway.model.drains import AT_REST

Shown = dict[str, Any]
# The bars compute rate and end from so many past seconds.
_RATE_OVER = 600.0


@drain.command()
@of_one_drain
@click.option(
    "--interval", default=2.0, show_default=True, type=click.FloatRange(0.1), help="Seconds between two requests."
)
@click.option("--json", "as_json", is_flag=True, help="A line of JSON whenever something has changed.")
def watch(wanted: str, interval: float, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """Follow a drain until it ends: servers, bytes, rate, and when it ends. Ctrl-C ends only the watching.

    Exit status: 0 if every server arrived, 1 if some did not, 2 if the cloud could not be asked.
    """
    connection = ask.connect(state_dir, os_cloud)
    path = path_of(connection, wanted, timeout)

    def look() -> Shown:
        shown: Shown = ask.ask(connection, path, timeout=timeout)["drain"]
        return shown

    if as_json:
        shown = _in_json(look, interval)
    else:
        shown = _with_bars(look, interval) if sys.stdout.isatty() else in_lines(look, interval)
    arrived, total = counts(progress_of(shown))
    sys.exit(0 if arrived == total else 1)


def _in_json(look: Callable[[], Shown], interval: float) -> Shown:
    seen: Shown = {}
    while (shown := look())["state"] not in AT_REST:
        if shown != seen:
            click.echo(json.dumps(shown))
            seen = shown
        time.sleep(interval)
    click.echo(json.dumps(shown))
    return shown


def in_lines(look: Callable[[], Shown], interval: float) -> Shown:
    """Prints a line whenever something has changed, for what is no terminal."""
    said = ""
    while True:
        shown = look()
        progress = progress_of(shown)
        moved = f"{words.size(progress.bytes_done)} of {words.size(progress.bytes_total)}"
        arrived, total = counts(progress)
        now = " ".join([_words(shown, None).replace("\n", ". "), f"{arrived} of {total} servers, {moved}"])
        if now != said:
            click.echo(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {now}")
            said = now
        if shown["state"] in AT_REST:
            return shown
        time.sleep(interval)


def _with_bars(look: Callable[[], Shown], interval: float) -> Shown:
    name, bar = TextColumn("{task.description}"), BarColumn()
    of_servers = Progress(name, bar, MofNCompleteColumn(), TimeRemainingColumn(), speed_estimate_period=_RATE_OVER)
    of_bytes = Progress(
        name, bar, DownloadColumn(binary_units=True), TransferSpeedColumn(), speed_estimate_period=_RATE_OVER
    )
    servers, moved = of_servers.add_task("servers", total=None), of_bytes.add_task("bytes  ", total=None)
    said = Text()
    with Live(Group(said, of_servers, of_bytes), console=Console(), refresh_per_second=4):
        while True:
            shown = look()
            progress = progress_of(shown)
            arrived, total = counts(progress)
            of_servers.update(servers, completed=arrived, total=total)
            of_bytes.update(moved, completed=progress.bytes_done, total=progress.bytes_total)
            said.plain = _words(shown, of_servers.tasks[0].time_remaining)
            if shown["state"] in AT_REST:
                return shown
            time.sleep(interval)


def _words(shown: Shown, seconds_left: float | None) -> str:
    states = ", ".join(
        f"{count} {state.replace('_', ' ')}" for state, count in progress_of(shown).servers.items() if count
    )
    lines = [f"{shown['name']}: {shown['state'].replace('_', ' ')} ({states or 'no servers'})"]
    if shown["state"] == "running" and seconds_left:
        end = datetime.now(UTC) + timedelta(seconds=seconds_left)
        lines.append(f"It ends at about {end:%Y-%m-%d %H:%M} UTC, in {words.duration(seconds_left)}.")
    if shown["note"]:
        lines.append(str(shown["note"]))
    return "\n".join(lines)
