"""Cases of operations, what came of them, and how that is told: a table and JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from .judge import FORWARD, LEAKED, LOST, STUCK, UNDONE, Complaint
from .operations import Operation

NOT_REACHED = "not reached"
# What is worse comes first.
KINDS = (STUCK, LOST, LEAKED)
OUTCOMES = (FORWARD, UNDONE, LOST, LEAKED, STUCK, NOT_REACHED)


@dataclass
class OperationCase:
    """``end``: where the operation ended, whatever is wrong besides."""

    operation: Operation
    action: str
    point: str
    complaints: list[Complaint] = field(default_factory=list)
    reached: bool = False
    end: str = ""

    @property
    def name(self) -> str:
        return f"{self.operation.name}, {self.point}"

    @property
    def outcome(self) -> str:
        """How it ended if nothing is wrong; else what is wrong."""
        if not self.reached:
            return NOT_REACHED
        kinds = {complaint.kind for complaint in self.complaints}
        return next((kind for kind in KINDS if kind in kinds), self.end)

    @property
    def is_well(self) -> bool:
        return self.outcome in (FORWARD, UNDONE)

    def complain(self, found: list[Complaint]) -> None:
        self.complaints += [each for each in found if each not in self.complaints]

    def as_json(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "operation": self.operation.name,
            "point": self.point,
            "outcome": self.outcome,
            "end": self.end,
            "complaints": [f"{each.kind}: {each.text}" for each in self.complaints],
        }


def as_json(cases: list[OperationCase]) -> dict[str, Any]:
    outcomes = [case.outcome for case in cases]
    return {
        "summary": {"cases": len(cases), **{each.replace(" ", "_"): outcomes.count(each) for each in OUTCOMES}},
        "cases": [case.as_json() for case in cases],
    }


def table(cases: list[OperationCase]) -> Table:
    shown = Table(
        "Action", "Operation", "Cases", *(each.capitalize() for each in OUTCOMES), title="Matrix of operations"
    )
    for action in dict.fromkeys(case.action for case in cases):
        of_action = [case for case in cases if case.action == action]
        for name in dict.fromkeys(case.operation.name for case in of_action):
            shown.add_row(action, name, *_counts([case for case in of_action if case.operation.name == name]))
        shown.add_row(action, "all", *_counts(of_action), end_section=True)
    return shown


def _counts(cases: list[OperationCase]) -> list[str]:
    outcomes = [case.outcome for case in cases]
    return [str(len(cases)), *(str(outcomes.count(each)) for each in OUTCOMES)]
