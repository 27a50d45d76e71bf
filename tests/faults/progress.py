"""How far a run of a matrix has come: a line on stderr now and then, and all that is known in a file.

A run takes an hour: what is known is there, too, if it is broken off.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cases import Case, as_json

# Cases between two lines.
EVERY = 25


@dataclass
class Progress:
    """``file``: where the cases are kept, if anywhere. ``seconds``: how long each action took."""

    file: Path | None
    seconds: dict[str, float]
    cases: list[Case[Any]] = field(default_factory=list)
    _action: str = ""
    _total: int = 0
    _done: int = 0

    def begin(self, action: str, total: int) -> None:
        self._action, self._total, self._done = action, total, 0
        self._say()

    def add(self, case: Case[Any]) -> None:
        self.cases.append(case)
        self._done += 1
        self.write()
        if self._done % EVERY == 0:
            self._say()

    def write(self) -> None:
        if self.file is not None:
            self.file.write_text(json.dumps(as_json(self.cases, self.seconds), indent=1))

    def _say(self) -> None:
        print(f"{self._action}: {self._done} of {self._total} cases", file=sys.stderr, flush=True)
