"""What came of a run: JSON that the next run compares with, a Markdown summary, and a page with pictures."""

from __future__ import annotations

import os
import platform
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from verify.outcomes import Outcome, from_dict

# Of the value in the last report: smaller changes are noise, of times at least.
CHANGE = 0.02
# Of a table of reasons: what is rarer is added up.
REASONS = 12


@dataclass
class Report:
    """``date``: when it was made. ``machine``: what it ran on. ``last``: figures of the report before.

    Outcomes of another state of the project are older; ``missing`` parts were never run.
    """

    state: str
    commit: str
    changed: bool
    date: str
    machine: str
    outcomes: list[Outcome]
    missing: list[str]
    last: dict[str, float]

    @property
    def passed(self) -> bool:
        """Whether everything was run that can be run here, and passed."""
        good = ("passed", "not run")
        return not self.missing and all(each.status in good and not self.is_older(each) for each in self.outcomes)

    def is_older(self, outcome: Outcome) -> bool:
        return outcome.state != self.state

    @property
    def figures(self) -> dict[str, float]:
        return {f"{each.part}: {name}": value for each in self.outcomes for name, value in each.counts.figures.items()}

    def changes(self) -> list[tuple[str, float, float]]:
        """(name, before, now) of figures that are not what they were, the largest change first."""
        found = [(name, self.last[name], now) for name, now in self.figures.items() if name in self.last]
        found = [each for each in found if abs(each[2] - each[1]) > CHANGE * abs(each[1])]
        return sorted(found, key=lambda each: abs(each[2] - each[1]) / (abs(each[1]) or 1), reverse=True)


def machine() -> str:
    """The machine in a few words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {system}, Python {platform.python_version()}"


def as_dict(report: Report) -> dict[str, Any]:
    return asdict(report) | {"passed": report.passed}


def read(written: dict[str, Any]) -> Report:
    fields = {name: value for name, value in written.items() if name != "passed"}
    return Report(**fields | {"outcomes": [from_dict(dict(each)) for each in written["outcomes"]]})


def totals(outcomes: list[Outcome]) -> dict[str, int]:
    """Of all parts together."""
    return {
        "passed": sum(each.counts.passed for each in outcomes),
        "failed": sum(len(each.counts.failed) for each in outcomes),
        "skipped": sum(sum(each.counts.skipped.values()) for each in outcomes),
        "excluded": sum(sum(each.counts.excluded.values()) for each in outcomes),
    }


def verdict(report: Report) -> str:
    """The report in a sentence or two."""
    not_run = "".join(f" Not run: {each.part}, because {each.reason}." for each in report.outcomes if each.reason)
    if report.passed:
        return f"Everything passed.{not_run}"
    now = [each for each in report.outcomes if not report.is_older(each)]
    bad = [each.part for each in now if each.status not in ("passed", "not run")]
    of = f"{len(now)} of {len(report.outcomes) + len(report.missing)} parts"
    said = f"**Not passed: {', '.join(bad)}.** {of} were run." if bad else f"What was run passed: {of}."
    if len(now) < len(report.outcomes):
        said += " Of others the last outcome stands here, with its commit."
    return said + not_run


def rows(report: Report) -> list[tuple[str, ...]]:
    """A row per part, and one of all: part, outcome, passed, failed, skipped, excluded, minutes.

    The minutes of all are those in which any of them ran: parts run at the same time, too.
    """
    found = []
    for each in report.outcomes:
        counts = totals([each]).values()
        shown = [str(count) if any(counts) else "" for count in counts]
        status = f"{each.status} at {each.commit[:7]}" if report.is_older(each) else each.status
        found.append((each.part, status, *shown, f"{each.seconds / 60:.1f}"))
    for part in report.missing:
        found.append((part, "not run", "", "", "", "", ""))
    counts = totals(report.outcomes).values()
    minutes = _seconds_of_any(report.outcomes) / 60
    found.append(("all", "passed" if report.passed else "", *map(str, counts), f"{minutes:.1f}"))
    return found


def _seconds_of_any(outcomes: list[Outcome]) -> float:
    """Seconds in which at least one of them ran."""
    seconds, until = 0.0, 0.0
    for began, lasted in sorted((datetime.fromisoformat(each.began).timestamp(), each.seconds) for each in outcomes):
        seconds += max(0.0, began + lasted - max(began, until))
        until = max(until, began + lasted)
    return seconds


HEADER = ("part", "outcome", "passed", "failed", "skipped", "excluded", "minutes")


def markdown(report: Report) -> str:
    """docs/verified.md."""
    day = datetime.fromisoformat(report.date).strftime("%d %B %Y, %H:%M UTC").lstrip("0")
    lines = [
        "# What was verified",
        "",
        "`make verify` runs everything that proves this project, and wrote this page.",
        "",
        f"{day}, commit `{report.commit[:12]}`{' with changes' if report.changed else ''}, {report.machine}. {verdict(report)}",
        "",
        _line(HEADER),
        _line(["---"] * len(HEADER)),
        *map(_line, rows(report)),
    ]
    failed = [f"- {each.part}: {name}" for each in report.outcomes for name in each.counts.failed]
    if failed:
        lines += ["", "## What failed", "", *failed]
    for kind in ("skipped", "excluded"):
        if found := reasons(report, kind):
            lines += ["", f"## What was {kind}, and why", "", _line(("reason", "tests")), _line(("---", "---"))]
            lines += [_line((reason.replace("\n", " "), str(count))) for reason, count in found]
    changes = report.changes()
    if changes:
        lines += ["", "## Figures that changed since the last report", ""]
        lines += [_line(("figure", "before", "now")), _line(("---", "---", "---"))]
        lines += [_line((name, number(before), number(now))) for name, before, now in changes[:40]]
    return "\n".join(lines) + "\n"


def _line(cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def number(value: float) -> str:
    """A figure as people read it."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3g}"


def reasons(report: Report, kind: str) -> list[tuple[str, int]]:
    """Why tests were "skipped" or "excluded": the reasons of all parts, the most frequent first."""
    counted = Counter[str]()
    for each in report.outcomes:
        counted.update(getattr(each.counts, kind))
    shown = counted.most_common(REASONS)
    rest = sum(counted.values()) - sum(count for _reason, count in shown)
    return [*shown, ("other reasons", rest)] if rest else shown
