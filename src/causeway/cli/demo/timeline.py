"""The tables at the end: every step of the moves, from the journal; and how they looked from outside."""

from __future__ import annotations

import json
import os
from typing import Any

from rich.table import Table

from causeway.cli.demo.chapter import Traveller
from causeway.cli.demo.client import execute
from causeway.cli.demo.cloud import Cloud
from causeway.cli.demo.screen import Screen
from causeway.model.operations import LIVE_MIGRATION
from causeway.moves.recipes import WITH_GUEST

# Steps that copy from the source: while the guest runs, and when it is off.
BEFORE, MEANWHILE = {"CopyWhileRunning"}, {"HandOver", "SaveGuest"}


def moves_of(cloud: Cloud, server: str, screen: Screen) -> list[dict[str, Any]]:
    """What ``causeway operation show`` shows of a server's moves, live migrations among them."""
    words = ["causeway", "operation", "show", server, "--json", "--state-dir", str(cloud.state.path)]
    screen.command(words)
    found: list[dict[str, Any]] = json.loads(execute(words, screen, dict(os.environ)))
    return [each for each in found if each["recipe"] in WITH_GUEST]


def timeline(moves: dict[str, list[dict[str, Any]]]) -> Table:
    """Server's name -> its moves, as one table: step, where, seconds, bytes."""
    table = Table("Step", "Where", title="Timeline", title_justify="left")
    table.add_column("Seconds", justify="right")
    table.add_column("Bytes", justify="right")
    for server, its_moves in moves.items():
        for move in its_moves:
            total = sum(step["seconds"] or 0.0 for step in move["steps"])
            table.add_row(
                f"[bold]{server}: {move['recipe']}[/]", f"[bold]{move['state']}[/]", f"[bold]{total:.2f}[/]", ""
            )
            for step in move["steps"]:
                what = step["step"] if step["phase"] == "do" else f"{step['step']} ({step['phase']})"
                table.add_row(
                    f"  {what}" if step["state"] == "done" else f"  {what}: {step['state']}",
                    step["host"] or "records",
                    f"{step['seconds']:.2f}" if step["seconds"] is not None else "",
                    f"{step['bytes_done']:,}" if step["bytes_done"] else "",
                )
            table.add_section()
    return table


def seen_from_outside(moves: dict[str, list[dict[str, Any]]], travellers: list[Traveller]) -> Table:
    """A table of the moves that guests could notice: how long each guest was silent, and the bytes copied before and then."""
    table = Table(title="Seen from outside", title_justify="left")
    table.add_column("Move", no_wrap=True)
    for column in ("Silent", "Bytes while it ran", "while it was off"):
        table.add_column(column, justify="right")
    for server in travellers:
        noticed = [move for move in moves[server.name] if "confirm" not in move["recipe"]]
        for move, journey in zip(noticed, server.journeys, strict=False):
            counts: list[int | None] = [_bytes(move, BEFORE), _bytes(move, MEANWHILE)]
            if move["recipe"] == LIVE_MIGRATION:
                # It is never off. The journal has a count of once a second; the target has counted everything.
                counts = [journey.received, None]
            said = [f"{count:,}" if count is not None else "" for count in counts]
            table.add_row(f"{server.name}: {move['recipe']}", f"{journey.silent:.2f} s", *said)
    return table


def _bytes(move: dict[str, Any], steps: set[str]) -> int:
    return sum(step["bytes_done"] or 0 for step in move["steps"] if step["step"] in steps and step["phase"] == "do")
