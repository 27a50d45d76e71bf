"""``causeway drain watch``: live bars for servers and bytes, until the drain ends."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from causeway.cli import ask
from causeway.cli.drain.group import counts, drain, of_one_drain, path_of, progress_of
from causeway.model.drains import AT_REST
from causeway.openstack_plugin import words

Shown = dict[str, Any]


@drain.command()
@of_one_drain
@click.option(
    "--interval", default=2.0, show_default=True, type=click.FloatRange(0.1), help="Seconds between two requests."
)
@click.option("--json", "as_json", is_flag=True, help="A line of JSON whenever something has changed.")
def watch(wanted: str, interval: float, state_dir: Path, os_cloud: str | None, timeout: float, as_json: bool) -> None:
    """Follow a drain until it ends: servers, bytes, rate, and when it may end. Ctrl-C ends only the watching.

    Where the output is no terminal, there is a line for each change.

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
        now = ". ".join([*_lines(shown), words.bytes_of_drain(shown), words.servers_of_drain(shown, "servers")])
        if now != said:
            click.echo(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {now}")
            said = now
        if shown["state"] in AT_REST:
            return shown
        time.sleep(interval)


def _with_bars(look: Callable[[], Shown], interval: float) -> Shown:
    bars = Progress(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"))
    servers, moved = (bars.add_task(name, total=None, said="") for name in ("servers", "bytes"))
    said = Text()
    with Live(Group(said, bars), console=Console(), refresh_per_second=4):
        while True:
            shown = look()
            progress = progress_of(shown)
            arrived, total = counts(progress)
            bars.update(servers, completed=arrived, total=total, said=words.servers_of_drain(shown))
            bars.update(moved, completed=progress.bytes_done, total=progress.bytes_total, said=_bytes(shown))
            said.plain = "\n".join(_lines(shown))
            if shown["state"] in AT_REST:
                return shown
            time.sleep(interval)


def _bytes(shown: Shown) -> str:
    """The bytes, and the rate that the drain has measured while it runs."""
    measured = (shown["pacing"] or {}).get("rate")
    rate = words.rate(measured) if shown["state"] == "running" and measured else ""
    return ", ".join(filter(None, [words.bytes_of_drain(shown), rate]))


def _lines(shown: Shown) -> list[str]:
    states = ", ".join(
        f"{count} {state.replace('_', ' ')}" for state, count in progress_of(shown).servers.items() if count
    )
    said = f"{shown['name']}: {shown['state'].replace('_', ' ')} ({states or 'no servers'})"
    return [said, str(shown["note"]).rstrip(".")] if shown["note"] else [said]
