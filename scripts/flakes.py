#!/usr/bin/env python3
"""The ledger of tests that failed, and passed when they were run again: docs/flakes.md. Each of them has found something.

scripts/flakes.py note TEST...   writes the tests of a run into it; exits with 1 if the run had too many, or if it `check`s badly
scripts/flakes.py check          exits with 1 if a test is in it twice without a cause
scripts/flakes.py show           prints its rows; continuous integration does, because its checkout is thrown away
"""

from __future__ import annotations

import datetime
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEDGER = ROOT / "docs/flakes.md"
# So many tests of one run may pass only when they are run again.
MOST_IN_A_RUN = 2
_HEADER = ("| date | test | cause |", "|---|---|---|")


@dataclass(frozen=True)
class Flake:
    """``test``: its function, ``FILE::NAME``, without the case. ``cause``: empty until somebody has found it."""

    date: datetime.date
    test: str
    cause: str = ""

    def __str__(self) -> str:
        return f"| {self.date.isoformat()} | `{self.test}` | {self.cause + ' ' if self.cause else ''}|"


def read(ledger: Path) -> list[Flake]:
    """Returns the rows, the oldest first. Raises ValueError if there is no table, or a row is not understood."""
    return [_flake(line) for line in _parts(ledger)[1]]


def write(ledger: Path, flakes: Sequence[Flake]) -> None:
    """Replaces the rows, and keeps the text around them."""
    before, _rows, after = _parts(ledger)
    ledger.write_text("\n".join([*before, *map(str, flakes), *after]) + "\n")


def note(ledger: Path, tests: Sequence[str], today: datetime.date) -> list[str]:
    """Adds the tests of a run, by their ids; one row for all cases of a function. Returns what is wrong now, in sentences."""
    functions = sorted({test.partition("[")[0] for test in tests})
    write(ledger, [*read(ledger), *(Flake(today, function) for function in functions)])
    wrong = unexplained(read(ledger))
    if len(tests) > MOST_IN_A_RUN:
        wrong.insert(
            0, f"{len(tests)} tests of one run passed only when they were run again, at most {MOST_IN_A_RUN} may"
        )
    return wrong


def unexplained(flakes: Sequence[Flake]) -> list[str]:
    """The tests that are there twice or more without a cause, a sentence for each."""
    times = Counter(flake.test for flake in flakes if not flake.cause)
    return [
        f"{test} is in docs/flakes.md {number} times without a cause: find it, and write it there"
        for test, number in sorted(times.items())
        if number > 1
    ]


def main(arguments: Sequence[str], ledger: Path = LEDGER) -> int:
    match arguments:
        case ["note", _, *_]:
            wrong = note(ledger, arguments[1:], datetime.datetime.now(tz=datetime.UTC).date())
        case ["check"]:
            wrong = unexplained(read(ledger))
        case ["show"]:
            wrong = []
            for flake in read(ledger):
                print(flake)
        case _:
            sys.exit(f"usage:\n{__doc__}")
    for sentence in wrong:
        print(f"flakes: {sentence}")
    return 1 if wrong else 0


def _parts(ledger: Path) -> tuple[list[str], list[str], list[str]]:
    """The lines up to the head of the table, its rows, and the lines after it."""
    lines = ledger.read_text().splitlines()
    for place in range(len(lines)):
        if tuple(lines[place : place + 2]) == _HEADER:
            first = last = place + 2
            while last < len(lines) and lines[last].startswith("|"):
                last += 1
            return lines[:first], lines[first:last], lines[last:]
    raise ValueError(f"{ledger} has no table with the head {_HEADER[0]}")


def _flake(line: str) -> Flake:
    cells = [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|", 2)]
    try:
        date, test, cause = cells
        return Flake(datetime.date.fromisoformat(date), test.strip("`"), cause)
    except ValueError as failure:
        raise ValueError(f"a row of flakes is not understood: {line}") from failure


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
