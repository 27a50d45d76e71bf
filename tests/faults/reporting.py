"""What is wanted of a run of a matrix, and what the run prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.faults.cases import ROLLED_BACK, Case, F, summary, table
from tests.faults.progress import Progress

# Complaints of one case that are printed; the file has all.
_PRINTED = 6


@dataclass(frozen=True)
class Wanted:
    """``flow``, ``point``: only those whose names have this in them. ``count``: so many points of each flow; None: all.

    ``stores``: where hosts keep disks (`Site.share_storage`). ``file``: where every case is kept. ``resume``: run only what had
    not recovered by what the file says.
    """

    actions: tuple[str, ...]
    flow: str = ""
    point: str = ""
    count: int | None = None
    driver: str = "simulated"
    file: Path | None = None
    resume: bool = False
    stores: str = ""


class Report:
    """Prints each case that did not recover or was rolled back, and everything as a table in the end."""

    def __init__(self, console: Console, wanted: Wanted, flows: Iterable[F]) -> None:
        self._console = console
        self.progress = Progress(wanted.file)
        if wanted.resume:
            self.progress.resume(flows)

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def add(self, case: Case[Any]) -> None:
        self.progress.add(case)
        if not case.is_well or case.end == ROLLED_BACK:
            self.say(f"{case.outcome}, {case.end}: {case.action} {case.name}")
            for complaint in case.complaints[:_PRINTED]:
                self.say(f"    {complaint}")

    def conclude(self) -> int:
        """Prints the table and the counts. Returns the exit status: 1 if a case did not recover, or if there was none."""
        self.progress.write()
        cases = self.progress.cases
        if not cases:
            self.say("Nothing was run: no flow has such a point for these actions. Are the names right, and --of?")
            return 1
        self._console.print(table(cases, self.progress.seconds))
        self.say(summary(cases))
        return 0 if all(case.is_well for case in cases) else 1
