"""The page of a report: outcomes, how long each part took, what failed, figures beside those of the last report."""

from __future__ import annotations

from html import escape
from typing import Any

from verify.report import HEADER, Report, number, reasons, rows, verdict

#: outcome -> the colour of its bar
COLORS = {
    "passed": "#2f855a",
    "failed": "#c53030",
    "timed out": "#b7791f",
    "interrupted": "#718096",
    "not run": "#718096",
}

STYLE = """body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1a202c }
table { border-collapse: collapse; margin: 1rem 0 }
td, th { padding: .2rem .8rem; text-align: left; border-bottom: 1px solid #e2e8f0 }
td.number { text-align: right } .passed { color: #2f855a } .failed, .timed { color: #c53030; font-weight: bold }
pre { white-space: pre-wrap } svg text { font: 12px system-ui, sans-serif }"""


def page(report: Report) -> str:
    """The whole page, in HTML, with nothing from elsewhere."""
    result = "Everything passed" if report.passed else "Not everything was run and passed"
    about = f"{report.date}, commit {report.commit[:12]}{' with changes' if report.changed else ''}, {report.machine}"
    parts = [
        f"<h1>{result}</h1><p>{escape(about)}. {escape(verdict(report))}</p>",
        _table(HEADER, rows(report)),
        "<h2>How long each part took</h2>",
        _bars([(each.part, each.seconds / 60, COLORS[each.status]) for each in report.outcomes], "min"),
    ]
    for each in report.outcomes:
        if each.counts.failed or each.status != "passed":
            names = "\n".join(each.counts.failed) or each.reason or "its program says no more than its exit status"
            parts.append(f"<h2>{escape(each.part)}: {each.status}</h2><pre>{escape(names)}\n{escape(each.log)}</pre>")
    for kind in ("skipped", "excluded"):
        if found := reasons(report, kind):
            parts.append(f"<h2>What was {kind}, and why</h2>" + _table(("reason", "tests"), found))
    if changes := report.changes():
        parts.append("<h2>Figures, as a share of those in the last report</h2>")
        parts.append(
            _bars([(name, 100 * now / before if before else 0, "#0b6e99") for name, before, now in changes], "%")
        )
    if report.figures:
        figures = [
            (name, number(report.last[name]) if name in report.last else "", number(now))
            for name, now in report.figures.items()
        ]
        parts.append("<h2>All figures</h2>" + _table(("figure", "last report", "now"), figures))
    head = f'<meta charset="utf-8"><title>{result}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en">{head}{"".join(parts)}</html>\n'


def _table(header: tuple[str, ...], lines: list[Any]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f'<td class="{_kind(str(cell))}">{escape(str(cell))}</td>' for cell in line) + "</tr>"
        for line in lines
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _kind(cell: str) -> str:
    return (
        "number" if cell[:1].isdigit() else (cell.partition(" at ")[0] if cell.partition(" at ")[0] in COLORS else "")
    )


def _bars(bars: list[tuple[str, float, str]], unit: str) -> str:
    """A horizontal bar for each (name, value, colour)."""
    longest = max((value for _name, value, _color in bars), default=1) or 1
    left, width, height = 380, 520, 20
    drawn = []
    for place, (name, value, color) in enumerate(bars):
        top, length = place * height, width * value / longest
        drawn.append(
            f'<text x="{left - 8}" y="{top + 14}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{left}" y="{top + 3}" width="{length:.1f}" height="{height - 6}" fill="{color}"/>'
            f'<text x="{left + length + 6:.1f}" y="{top + 14}">{value:.3g} {unit}</text>'
        )
    size = f'width="{left + width + 90}" height="{len(bars) * height + 4}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{"".join(drawn)}</svg>'
