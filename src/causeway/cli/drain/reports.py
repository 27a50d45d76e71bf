"""The report of a drain: which servers moved when and how, what failed and why, what was left. Made from the API's answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any

import msgspec

from causeway.cli import templates
from causeway.model.drains import ARRIVED, Drain, DrainServer, DrainServerState
from causeway.openstack_plugin import words

# The size of the plots, in pixels.
WIDTH, HEIGHT = 640, 200
_BARS = 20


@dataclass
class Curve:
    """How many servers had arrived at which time: the points of a line, and what its axes are labelled with."""

    points: str
    first: datetime
    last: datetime
    most: int


@dataclass
class Bars:
    """How many moves took how long. ``bars``: x, y, width and height of each; ``longest``: seconds at the right end."""

    bars: list[tuple[float, float, float, float]]
    longest: float
    most: int


@dataclass
class Way:
    """The servers that went one way: their number and bytes, and the seconds that their moves took.

    ``still``: the median of the seconds for which guests stood still or were off; ``still_longest``: the longest. None: unknown.
    """

    how: str
    servers: int
    bytes: int
    shortest: float
    middle: float
    longest: float
    still: float | None = None
    still_longest: float | None = None


@dataclass
class DrainReport:
    """``left``: servers that are where they were, with the reason. Bytes are those of local disks."""

    drain: Drain
    servers: list[DrainServer]
    states: dict[str, int] = field(default_factory=dict)
    arrived: int = 0
    bytes_moved: int = 0
    seconds: float | None = None
    ways: list[Way] = field(default_factory=list)
    left: list[DrainServer] = field(default_factory=list)
    retried: int = 0
    curve: Curve | None = None
    bars: Bars | None = None


def report_of(shown: dict[str, Any], servers: list[dict[str, Any]]) -> DrainReport:
    """``shown`` and ``servers`` as the API answers them."""
    drain = msgspec.convert(shown, Drain)
    rows = [msgspec.convert(server, DrainServer) for server in servers]
    arrived = [row for row in rows if row.state in ARRIVED]
    report = DrainReport(
        drain,
        sorted(rows, key=lambda row: (row.began_at is None, row.began_at or datetime.min, row.instance_uuid)),
        states=dict(sorted(Counter(row.state.value for row in rows).items())),
        arrived=len(arrived),
        bytes_moved=sum(row.bytes for row in arrived),
        left=[row for row in rows if row.state not in ARRIVED],
        retried=sum(row.attempts > 1 for row in rows),
    )
    if drain.started_at is not None and drain.ended_at is not None:
        report.seconds = (drain.ended_at - drain.started_at).total_seconds()
    report.ways = _ways(arrived)
    report.curve = _curve(drain, arrived)
    report.bars = _bars([seconds for row in arrived if (seconds := taken(row)) is not None])
    return report


def taken(server: DrainServer) -> float | None:
    """Seconds that its move took, by the journal, else as the drain saw it. None if it has not begun, or not ended."""
    if server.took is not None:
        return server.took
    if server.began_at is None or server.ended_at is None:
        return None
    return (server.ended_at - server.began_at).total_seconds()


def as_text(report: DrainReport, template: str) -> str:
    """``template``: drain.html.j2 or drain.md.j2."""
    environment = templates.environment("causeway.cli.drain")
    environment.filters |= {"size": words.size, "span": words.duration, "cell": _cell}
    names = {"report": report, "width": WIDTH, "height": HEIGHT, "taken": taken, "failed": DrainServerState.FAILED}
    return environment.get_template(template).render(names)


def as_json(report: DrainReport) -> dict[str, Any]:
    """The report without its plots."""
    built: dict[str, Any] = msgspec.to_builtins(report)
    return {name: value for name, value in built.items() if name not in ("curve", "bars")}


def _cell(text: object) -> str:
    """Text that can be part of a Markdown table."""
    return str(text or "").replace("|", "\\|").replace("\n", " ")


def _ways(arrived: list[DrainServer]) -> list[Way]:
    found: dict[str, list[DrainServer]] = {}
    for row in arrived:
        found.setdefault(row.how.value if row.how is not None else "unknown", []).append(row)
    ways = []
    for how, rows in sorted(found.items()):
        times = [seconds for row in rows if (seconds := taken(row)) is not None] or [0.0]
        still = [row.stood_still for row in rows if row.stood_still is not None]
        ways.append(
            Way(
                how,
                len(rows),
                sum(row.bytes for row in rows),
                min(times),
                median(times),
                max(times),
                median(still) if still else None,
                max(still) if still else None,
            )
        )
    return ways


def _curve(drain: Drain, arrived: list[DrainServer]) -> Curve | None:
    ends = sorted(row.ended_at for row in arrived if row.ended_at is not None)
    first = drain.started_at
    if not ends or first is None:
        return None
    last = max(ends[-1], drain.ended_at or ends[-1])
    whole = (last - first).total_seconds() or 1.0
    points, height = [f"0,{HEIGHT}"], float(HEIGHT)
    for number, end in enumerate(ends, 1):
        x = WIDTH * (end - first).total_seconds() / whole
        points.append(f"{x:.1f},{height:.1f}")
        height = HEIGHT * (1 - number / len(ends))
        points.append(f"{x:.1f},{height:.1f}")
    points.append(f"{WIDTH},{height:.1f}")
    return Curve(" ".join(points), first, last, len(ends))


def _bars(seconds: list[float]) -> Bars | None:
    if not seconds:
        return None
    longest = max(seconds) or 1.0
    counts = Counter(min(_BARS - 1, int(_BARS * each / longest)) for each in seconds)
    most, width = max(counts.values()), WIDTH / _BARS
    bars = [
        (number * width, HEIGHT * (1 - count / most), width - 2, HEIGHT * count / most)
        for number, count in sorted(counts.items())
    ]
    return Bars(bars, longest, most)
