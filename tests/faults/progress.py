"""How far a run of a matrix has come: a line on stderr now and then, and all that is known in a file.

A run takes an hour. If it is broken off, another one can continue from the file: it runs only what had not recovered.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.faults.cases import RECOVERED, Case, F, as_json

# Cases between two lines.
EVERY = 25


class Progress:
    """``file``: where the cases are kept, if anywhere."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        #: how long each action took, in all runs
        self.seconds: dict[str, float] = {}
        self._cases: dict[tuple[str, str, str], Case[Any]] = {}
        self._action, self._total, self._done = "", 0, 0
        self._counted_at = 0.0

    @property
    def cases(self) -> list[Case[Any]]:
        return list(self._cases.values())

    def resume(self, flows: Iterable[F]) -> None:
        """Reads what recovered in an earlier run that kept its cases in the same file. ``flows``: those of its cases."""
        if self._file is None or not self._file.exists():
            return
        by_name = {flow.name: flow for flow in flows}
        content = json.loads(self._file.read_text())
        self.seconds |= content["summary"]["seconds"]
        for kept in content["cases"]:
            if kept["outcome"] == RECOVERED and kept["flow"] in by_name:
                self._keep(Case(by_name[kept["flow"]], kept["action"], kept["point"], reached=True, end=kept["end"]))

    def begin(self, action: str, points: Mapping[F, list[str]]) -> dict[F, list[str]]:
        """Begins an action, and returns the points that are left of it."""
        left = {
            flow: [point for point in wanted if (action, flow.name, point) not in self._cases]
            for flow, wanted in points.items()
        }
        self._action, self._total = action, sum(map(len, points.values()))
        self._done = self._total - sum(map(len, left.values()))
        self._counted_at = time.monotonic()
        self._say()
        return left

    def add(self, case: Case[Any]) -> None:
        self._keep(case)
        self._done += 1
        self.write()
        if self._done % EVERY == 0:
            self._say()

    def write(self) -> None:
        """Counts the time of the present action, and writes all that is known."""
        now = time.monotonic()
        if self._action:
            self.seconds[self._action] = self.seconds.get(self._action, 0.0) + now - self._counted_at
            self._counted_at = now
        if self._file is not None:
            new = self._file.with_name(f"{self._file.name}.new")
            new.write_text(json.dumps(as_json(self.cases, self.seconds), indent=1))
            new.replace(self._file)

    def end(self) -> None:
        """Ends the present action."""
        self.write()
        self._action = ""

    def _keep(self, case: Case[Any]) -> None:
        self._cases[case.action, case.flow.name, case.point] = case

    def _say(self) -> None:
        print(f"{self._action}: {self._done} of {self._total} cases", file=sys.stderr, flush=True)
