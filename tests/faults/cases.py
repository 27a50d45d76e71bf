"""Cases of the matrices, what came of them, and how that is reported: a table, a sentence and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from rich.table import Table

from tests.faults.complaints import KINDS, Complaint

# Where an operation ended. "undone": it was meant to be, its flow is spoiled; "neither": not done, and not as before.
FORWARD, ROLLED_BACK, REFUSED, UNDONE, NEITHER = "forward", "rolled back", "refused", "undone", "neither"
ENDS = (FORWARD, ROLLED_BACK, UNDONE, REFUSED, NEITHER)
RECOVERED, NOT_REACHED = "recovered", "not reached"
OUTCOMES = (RECOVERED, *KINDS, NOT_REACHED)
# Of those that meet a single fault which passes within a minute, so many end where their users wanted them.
AIM = 0.95
PASSING = ("error", "crash", "hang", "pause", "long-pause", "longest-pause", "power-cut", "service-killed")


class Named(Protocol):
    """What is asked for. ``name`` is its own, ``group`` that of its line in a table."""

    @property
    def name(self) -> str: ...

    @property
    def group(self) -> str: ...


F = TypeVar("F", bound=Named)


@dataclass
class Case(Generic[F]):
    """One fault at one point of a flow. ``end``: one of `ENDS`, when it was reached."""

    flow: F
    action: str
    point: str
    complaints: list[Complaint] = field(default_factory=list)
    reached: bool = False
    end: str = ""

    @property
    def name(self) -> str:
        return f"{self.flow.name}, {self.point}"

    @property
    def outcome(self) -> str:
        """The worst of what is wrong, if anything is."""
        if not self.reached:
            return NOT_REACHED
        kinds = {complaint.kind for complaint in self.complaints}
        return next((kind for kind in KINDS if kind in kinds), RECOVERED)

    @property
    def is_well(self) -> bool:
        return self.outcome == RECOVERED

    def complain(self, found: Iterable[Complaint]) -> None:
        self.complaints += [each for each in found if each not in self.complaints]

    def __str__(self) -> str:
        return f"{self.outcome}, {self.end}: {self.action} {self.name}: {'; '.join(map(str, self.complaints))}"

    def as_json(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "flow": self.flow.name,
            "point": self.point,
            "outcome": self.outcome,
            "end": self.end,
            "complaints": [str(complaint) for complaint in self.complaints],
        }


def share_forward(cases: list[Case[Any]]) -> float | None:
    """How many of the moves that met a fault which passes, and were accepted, ended where the user wanted them."""
    ends = passing(cases)
    accepted = ends.count(FORWARD) + ends.count(ROLLED_BACK)
    return ends.count(FORWARD) / accepted if accepted else None


def passing(cases: list[Case[Any]]) -> list[str]:
    """The ends of moves that met a fault which passes."""
    return [case.end for case in cases if case.action in PASSING]


def summary(cases: list[Case[Any]]) -> str:
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


def as_json(cases: list[Case[Any]], seconds: dict[str, float]) -> dict[str, Any]:
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


def table(cases: list[Case[Any]], seconds: dict[str, float]) -> Table:
    columns = [each.capitalize() for each in (*ENDS, *OUTCOMES)]
    shown = Table("Action", "Operation", "Cases", *columns, title="Matrix of faults")
    for action in seconds:
        of_action = [case for case in cases if case.action == action]
        for name in dict.fromkeys(case.flow.group for case in of_action):
            shown.add_row(action, name, *_counts([case for case in of_action if case.flow.group == name]))
        shown.add_row(action, f"all ({seconds[action]:.0f} s)", *_counts(of_action), end_section=True)
    return shown


def _counts(cases: list[Case[Any]]) -> list[str]:
    ends, outcomes = [case.end for case in cases if case.reached], [case.outcome for case in cases]
    return [
        str(len(cases)),
        *(str(ends.count(each)) for each in ENDS),
        *(str(outcomes.count(each)) for each in OUTCOMES),
    ]
