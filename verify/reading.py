"""Counts and figures of a part, from the file that its program wrote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree


@dataclass
class Counts:
    """``skipped``: reason -> how many. ``figures``: name -> value, to be compared with those of the last report."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    excluded: dict[str, int] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)


#: reads a result file; it exists
Reader = Callable[[Path], Counts]


def nothing(_file: Path) -> Counts:
    """For programs that say no more than their exit status."""
    return Counts()


def junit(file: Path) -> Counts:
    """What pytest wrote with ``--junitxml``."""
    found, skipped = Counts(), Counter[str]()
    for case in ElementTree.parse(file).iter("testcase"):
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            found.failed.append(f"{case.get('classname')}::{case.get('name')}")
        elif skip is not None:
            skipped[skip.get("message") or "no reason"] += 1
        else:
            found.passed += 1
    found.skipped = dict(skipped.most_common())
    return found


def coverage(file: Path) -> Counts:
    """What coverage.py wrote as JSON."""
    return Counts(figures={"percent of lines": round(json.loads(file.read_text())["totals"]["percent_covered"], 1)})


def suites(file: Path) -> Counts:
    """What Tempest's and the clients' tests left (`tests/integration/subunit_report.py`): an object per suite, one per line."""
    found = Counts()
    for line in file.read_text().splitlines():
        one = json.loads(line)
        found.passed += one["passed"]
        found.failed += one["failed"]
        for name in ("skipped", "excluded"):
            counts = getattr(found, name)
            for reason, count in one[name].items():
                counts[reason] = counts.get(reason, 0) + count
    return found


def matrix(file: Path) -> Counts:
    """What the matrix of faults wrote: a case passed if everything recovered."""
    found = Counts()
    for case in json.loads(file.read_text())["cases"]:
        if case["outcome"] == "recovered":
            found.passed += 1
        else:
            found.failed.append(" ".join(str(case[name]) for name in ("outcome", "action", "flow", "point")))
    return found


def storm(file: Path) -> Counts:
    """What the storm wrote: requests that were answered, and what was wrong in the end."""
    written = json.loads(file.read_text())
    failed = [f"{uuid or 'no server'}: {complaint}" for uuid, of in written["wrong"].items() for complaint in of]
    return Counts(passed=sum(written["answers"].values()), failed=failed)


def calls(file: Path) -> Counts:
    """What ``make bench`` wrote: calls and statements of each operation, and the median of its time."""
    found = Counts()
    written = json.loads(file.read_text())
    for operation, kinds in written["calls"].items():
        for kind, of in kinds.items():
            if isinstance(of, dict) and "total" in of:
                found.figures[f"{operation}: {kind}"] = of["total"]
    for operation, times in written["milliseconds"].items():
        found.figures[f"{operation}: ms"] = times["median"]
    return found


def numbers(file: Path) -> Counts:
    """All numbers in a JSON file, by the names on their way."""
    found = Counts()

    def look(value: Any, way: tuple[str, ...]) -> None:
        if isinstance(value, dict):
            for name, below in value.items():
                look(below, (*way, str(name)))
        elif isinstance(value, list):
            for place, below in enumerate(value):
                look(below, (*way, str(place)))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.figures[" ".join(way)] = value

    look(json.loads(file.read_text()), ())
    return found
