"""Operations with their steps, as tables."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape

from causeway.cli import tables
from causeway.openstack_plugin import words

Operation = dict[str, Any]


def show_overview(found: list[Operation], console: Console) -> None:
    titles = ("Operation", "Server", "Recipe", "State", "Step", "Bytes", "Started", "Owner", "Error")
    rows = [
        [
            each["id"],
            each["instance_uuid"],
            each["recipe"],
            words.standing(each),
            each["step"],
            words.transferred(each),
            each["started_at"],
            escape(each["owner"] or ""),
            escape(words.reason(each)),
        ]
        for each in found
    ]
    tables.show(console, titles, rows, folded=("State", "Bytes"), reasons="Error")


def show_timeline(found: Operation, console: Console) -> None:
    title = f"{found['recipe']} of {found['instance_uuid']}: {words.standing(found)}"
    if words.reason(found):
        title += f". {escape(words.reason(found))}"
    titles = ("Step", "Phase", "Where", "State", "Attempts", "Seconds", "Bytes", "Error")
    rows = [
        [
            step["step"],
            step["phase"],
            step["host"] or "records",
            step["state"],
            str(step["attempt"]),
            f"{step['seconds']:.3f}" if step["seconds"] is not None else "running",
            words.transferred(step),
            escape(words.errors_of(step)),
        ]
        for step in found["steps"]
    ]
    tables.show(console, titles, rows, folded=("Bytes",), reasons="Error", title=title)
