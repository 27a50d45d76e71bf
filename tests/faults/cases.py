"""Cases of the matrix, what came of them, and how that is told: a table, a sentence and JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

from rich.table import Table

from . import look
from .flows import Flow

# Where a move ended. "undone": it was meant to be, its flow is spoiled.
FORWARD, ROLLED_BACK, REFUSED, UNDONE = "forward", "rolled back", "refused", "undone"
OUTCOMES = ("recovered", "lost", "leaked", "not reached")
ENDS = (FORWARD, ROLLED_BACK, UNDONE, REFUSED)
# Of moves that meet a single fault which passes within a minute, so many end where their users wanted them.
AIM = 0.95
PASSING = ("error", "crash", "hang", "pause", "long-pause", "power-cut")


@dataclass
class Case:
    """``end``: one of `ENDS`, when it was reached."""

    flow: Flow
    action: str
    point: str
    complaints: list[str] = field(default_factory=list)
    reached: bool = False
    end: str = ""

    @property
    def outcome(self) -> str:
        if not self.reached:
            return "not reached"
        if not self.complaints:
            return "recovered"
        return "lost" if any(look.is_lost(complaint) for complaint in self.complaints) else "leaked"

    def as_json(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "flow": self.flow.name,
            "point": self.point,
            "outcome": self.outcome,
            "end": self.end,
            "complaints": self.complaints,
        }


def share_forward(cases: list[Case]) -> float | None:
    """How many of the moves that met a fault which passes, and were accepted, ended where the user wanted them."""
    ends = passing(cases)
    accepted = ends.count(FORWARD) + ends.count(ROLLED_BACK)
    return ends.count(FORWARD) / accepted if accepted else None


def passing(cases: list[Case]) -> list[str]:
    """The ends of moves that met a fault which passes."""
    return [case.end for case in cases if case.action in PASSING]


def summary(cases: list[Case]) -> str:
    ends, outcomes = passing(cases), [case.outcome for case in cases]
    share, accepted = share_forward(cases), ends.count(FORWARD) + ends.count(ROLLED_BACK)
    forward = (
        "No fault that passes" if share is None else f"Of single faults that pass {100 * share:.1f} % went forward"
    )
    return (
        f"{forward} ({ends.count(FORWARD)} of {accepted}; aim {100 * AIM:.0f} %);"
        f" {ends.count(REFUSED)} were refused, {ends.count(UNDONE)} undone as they were meant to be."
        f" {len(cases)} cases: {', '.join(f'{outcomes.count(each)} {each}' for each in OUTCOMES)}."
    )


def as_json(cases: list[Case], seconds: dict[str, float]) -> dict[str, Any]:
    ends, outcomes = [case.end for case in cases], [case.outcome for case in cases]
    return {
        "summary": {
            "cases": len(cases),
            "share_forward": share_forward(cases),
            "seconds": seconds,
            **{each.replace(" ", "_"): ends.count(each) for each in ENDS},
            **{each.replace(" ", "_"): outcomes.count(each) for each in OUTCOMES},
        },
        "cases": [case.as_json() for case in cases],
    }


def table(cases: list[Case], seconds: dict[str, float]) -> Table:
    columns = [each.capitalize() for each in (*ENDS, *OUTCOMES)]
    shown = Table("Action", "Operation", "Cases", *columns, title="Matrix of faults")
    for action in seconds:
        of_action = [case for case in cases if case.action == action]
        for operation, reach in product(("resize", "confirm", "revert"), ("cross", "same", "host")):
            group = [each for each in of_action if (each.flow.operation, each.flow.reach) == (operation, reach)]
            if group:
                shown.add_row(action, f"{reach}{'-cell' if reach != 'host' else ''} {operation}", *_counts(group))
        shown.add_row(action, f"all ({seconds[action]:.0f} s)", *_counts(of_action), end_section=True)
    return shown


def _counts(cases: list[Case]) -> list[str]:
    ends, outcomes = [case.end for case in cases], [case.outcome for case in cases]
    counts = [ends.count(each) for each in ENDS] + [outcomes.count(each) for each in OUTCOMES]
    return [str(len(cases)), *(str(count) for count in counts)]
