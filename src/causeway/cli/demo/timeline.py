"""The table at the end: every step of the moves, from the journal."""

from __future__ import annotations

import json
import os
from typing import Any

import sqlalchemy as sa
from rich.table import Table

from causeway.cli.demo.client import execute
from causeway.cli.demo.cloud import Cloud
from causeway.cli.demo.screen import Screen


def moves_of(cloud: Cloud, server: str, screen: Screen) -> list[dict[str, Any]]:
    """What ``causeway move show`` tells of a server's moves."""
    url = cloud.database("api")
    words = ["causeway", "move", "show", server, "--json", "--database"]
    screen.command([*words, sa.make_url(url).render_as_string(hide_password=True)])
    words.append(url)
    moves: list[dict[str, Any]] = json.loads(execute(words, screen, dict(os.environ)))
    return moves


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
