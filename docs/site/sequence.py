"""Sequence diagrams as SVG: lanes from left to right, rows from top to bottom. They need nothing from the network."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from html import escape

MARGIN = 16
LANE_WIDTH = 190
LINE = 16
# How wide a letter of 12 pixels is, on average: text is wrapped by it.
LETTER = 6.3
INK, PALE, ACCENT = "#1f2933", "#9aa5b1", "#0b6e99"


@dataclass(frozen=True)
class Heading:
    """A row over all lanes: what begins here, and a sentence about it."""

    text: str
    detail: str = ""


@dataclass(frozen=True)
class Message:
    """An arrow from one lane to another. ``dashed``: an undo."""

    source: str
    target: str
    text: str
    dashed: bool = False


@dataclass(frozen=True)
class Note:
    """A box on a lane."""

    lane: str
    text: str


@dataclass(frozen=True)
class Rule:
    """A thick line over all lanes, with a sentence."""

    text: str


Row = Heading | Message | Note | Rule


@dataclass
class Diagram:
    """``lanes``: key -> what is written above it."""

    title: str
    lanes: dict[str, str]
    rows: list[Row] = field(default_factory=list)

    @property
    def description(self) -> str:
        """The rows as text, for those who don't see the picture."""
        return "; ".join(row.text for row in self.rows if isinstance(row, Heading | Note | Rule))


def draw(diagram: Diagram) -> str:
    """The picture as an SVG document."""
    centers = {key: MARGIN + LANE_WIDTH * place + LANE_WIDTH // 2 for place, key in enumerate(diagram.lanes)}
    width = 2 * MARGIN + LANE_WIDTH * len(diagram.lanes)
    top = MARGIN + 34
    parts: list[str] = []
    y = top + 14
    for row in diagram.rows:
        drawn, height = _row(row, y, centers, width)
        parts += drawn
        y += height
    bottom = y + 4
    lanes = [
        f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="{PALE}" stroke-dasharray="2 4"/>'
        for x in centers.values()
    ]
    heads = [
        f'<rect x="{x - LANE_WIDTH // 2 + 8}" y="{MARGIN}" width="{LANE_WIDTH - 16}" height="30" rx="4" fill="#e4f1f7"'
        f' stroke="{ACCENT}"/>' + _text(x, MARGIN + 20, diagram.lanes[key], anchor="middle", bold=True)
        for key, x in centers.items()
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + MARGIN}"'
            f' viewBox="0 0 {width} {bottom + MARGIN}" font-family="sans-serif" font-size="12" role="img">',
            f"<title>{escape(diagram.title)}</title>",
            f"<desc>{escape(diagram.description)}</desc>",
            f'<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
            f'<path d="M0,0 L9,4 L0,8 z" fill="{INK}"/></marker></defs>',
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *lanes,
            *heads,
            *parts,
            "</svg>",
        ]
    )


def from_mermaid(text: str, title: str) -> Diagram:
    """The diagram of a Mermaid ``sequenceDiagram``: participants, messages and notes. Raises ValueError at any other line."""
    diagram = Diagram(title, {})
    for line in filter(None, map(str.strip, text.splitlines())):
        if line == "sequenceDiagram":
            continue
        if found := re.fullmatch(r"participant (\w+) as (.+)", line):
            diagram.lanes[found[1]] = found[2]
        elif found := re.fullmatch(r"(\w+)(--?>>)(\w+): (.+)", line):
            diagram.rows.append(Message(found[1], found[3], found[4], dashed=found[2] == "-->>"))
        elif found := re.fullmatch(r"Note over (\w+): (.+)", line):
            diagram.rows.append(Note(found[1], found[2]))
        else:
            raise ValueError(f"no line of a sequence diagram that this can draw: {line!r}")
    return diagram


def _row(row: Row, y: int, centers: dict[str, int], width: int) -> tuple[list[str], int]:
    """What is drawn of a row that begins at ``y``, and its height."""
    inner = width - 2 * MARGIN
    if isinstance(row, Heading):
        lines = textwrap.wrap(row.detail, int((inner - 20) / LETTER))
        height = 24 + LINE * len(lines)
        box = f'<rect x="{MARGIN}" y="{y}" width="{inner}" height="{height}" rx="4" fill="#f5f7fa" stroke="#e4e7eb"/>'
        shown = [_text(MARGIN + 10, y + 34 + LINE * place, line) for place, line in enumerate(lines)]
        return [box, _text(MARGIN + 10, y + 17, row.text, bold=True), *shown], height + 8
    if isinstance(row, Rule):
        lines = textwrap.wrap(row.text, int((inner - 20) / LETTER))
        line = (
            f'<line x1="{MARGIN}" y1="{y + 4}" x2="{width - MARGIN}" y2="{y + 4}" stroke="{ACCENT}" stroke-width="3"/>'
        )
        shown = [
            _text(width // 2, y + 22 + LINE * place, each, anchor="middle", color=ACCENT, bold=True)
            for place, each in enumerate(lines)
        ]
        return [line, *shown], 22 + LINE * len(lines) + 6
    if isinstance(row, Note):
        lines = textwrap.wrap(row.text, int((LANE_WIDTH - 20) / LETTER))
        x, height = centers[row.lane], 10 + LINE * len(lines)
        box = (
            f'<rect x="{x - LANE_WIDTH // 2 + 4}" y="{y}" width="{LANE_WIDTH - 8}" height="{height}" rx="3" fill="#fff8e1"'
            ' stroke="#e0c36b"/>'
        )
        shown = [_text(x, y + 17 + LINE * place, each, anchor="middle") for place, each in enumerate(lines)]
        return [box, *shown], height + 8
    start, end = centers[row.source], centers[row.target]
    lines = textwrap.wrap(row.text, max(int(abs(end - start) / LETTER), 24))
    shown = [
        _text((start + end) // 2, y + 12 + LINE * place, each, anchor="middle", halo=True)
        for place, each in enumerate(lines)
    ]
    below = y + LINE * len(lines) + 4
    dashes = ' stroke-dasharray="5 4"' if row.dashed else ""
    arrow = (
        f'<line x1="{start}" y1="{below}" x2="{end}" y2="{below}" stroke="{INK}" stroke-width="1.4"{dashes}'
        ' marker-end="url(#head)"/>'
    )
    return [arrow, *shown], LINE * len(lines) + 16


def _text(
    x: int, y: int, text: str, *, anchor: str = "start", color: str = INK, bold: bool = False, halo: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    around = ' paint-order="stroke" stroke="#ffffff" stroke-width="4"' if halo else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{color}"{weight}{around}>{escape(text)}</text>'
