"""Lines and arrows of SVG pictures: a drain's curve, and an operation as the sequence diagram that it really took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

WIDTH, HEIGHT = 640, 200
# Distances in a sequence diagram: between two lifelines, above the first arrow, between two arrows.
LANE, HEAD, ROW = 190, 40, 44
RECORDS = "conductor"


@dataclass
class Curve:
    """``past``: points for the servers that have arrived; ``ahead``: from now to the expected end, empty if it is unknown."""

    past: str
    ahead: str
    first: str
    last: str
    most: int


@dataclass
class Arrow:
    """A step: from the conductor to where it works, or at the conductor (``is_own``). ``kind``: do or undo, and its state."""

    y: int
    x: int
    is_own: bool
    kind: str
    text: str
    note: str


@dataclass
class Sequence:
    lanes: list[tuple[int, str]]
    arrows: list[Arrow]
    width: int
    height: int


def curve(drain: Mapping[str, Any], ends: list[str], total: int, now: datetime) -> Curve | None:
    """A drain's curve; None if it was not started. ``ends``: when servers arrived; ``total``: how many are to arrive."""
    if drain["started_at"] is None or not total:
        return None
    first = datetime.fromisoformat(drain["started_at"])
    times = sorted(datetime.fromisoformat(end) for end in ends)
    is_over = drain["ended_at"] is not None
    last = datetime.fromisoformat(drain["ended_at"]) if is_over else now
    gone = (last - first).total_seconds()
    ends_at = drain["progress"].get("ends_at")
    left = max(0.0, (datetime.fromisoformat(ends_at) - last).total_seconds()) if ends_at and not is_over else 0.0
    whole = (gone + left) or 1.0

    def place(seconds: float, count: float) -> str:
        return f"{WIDTH * seconds / whole:.1f},{HEIGHT * (1 - count / total):.1f}"

    points = [place(0, 0)]
    for number, end in enumerate(times, 1):
        at = min(max(0.0, (end - first).total_seconds()), gone)
        points += [place(at, number - 1), place(at, number)]
    points.append(place(gone, len(times)))
    ahead = f"{place(gone, len(times))} {place(gone + left, total)}" if left else ""
    end = last + timedelta(seconds=left)
    return Curve(" ".join(points), ahead, f"{first:%Y-%m-%d %H:%M}", f"{end:%Y-%m-%d %H:%M}", total)


def sequence(steps: list[dict[str, Any]], said: Mapping[str, Any]) -> Sequence:
    """An operation's steps as a diagram. ``said``: functions that put ``size`` and ``duration`` into words."""
    names = [RECORDS, *dict.fromkeys(step["host"] for step in steps if step["host"])]
    lanes = [(60 + number * LANE, name) for number, name in enumerate(names)]
    where = {name: x for x, name in lanes}
    arrows = []
    for number, step in enumerate(steps):
        host = step["host"] or RECORDS
        notes = [said["duration"](step["seconds"])]
        if step["bytes_done"]:
            notes.append(said["size"](step["bytes_done"]))
        if step["attempt"] > 1:
            notes.append(f"{step['attempt']} attempts")
        if step["state"] == "started" and step["percent"] is not None:
            notes.append(f"{step['percent']} %")
        if step["state"] == "started" and step["seconds_left"] is not None:
            notes.append(f"about {said['duration'](step['seconds_left'])} left")
        text = step["step"] if step["phase"] == "do" else f"{step['step']} (undone)"
        kind = f"{step['phase']} {step['state']}"
        arrows.append(
            Arrow(HEAD + 30 + number * ROW, where[host], host == RECORDS, kind, text, ", ".join(filter(None, notes)))
        )
    return Sequence(lanes, arrows, lanes[-1][0] + 260, HEAD + 30 + len(steps) * ROW)
