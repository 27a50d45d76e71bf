"""Steps and recipes: what a move consists of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from causeway.errors import CausewayError
from causeway.model.states import MigrationStatus
from causeway.moves.run import Run


class Step(ABC):
    """One step of a move. ``do`` and ``undo`` may each be repeated after having been broken off anywhere."""

    name: ClassVar[str]
    #: the migration's status from the moment the step begins (None: as it was)
    migration_status: ClassVar[MigrationStatus | None] = None

    #: whether the move has powered the guest off, or is about to, when the step begins
    has_guest_off: ClassVar[bool] = False

    def where(self, run: Run) -> str | None:  # noqa: ARG002
        """The host that the step works on, None if it works on records and services only."""
        return None

    @abstractmethod
    def do(self, run: Run) -> None:
        """Takes the step. What it learns goes into ``run.memory``."""

    def undo(self, run: Run) -> None:  # noqa: B027
        """Takes back whatever ``do`` did, as far as it came. Steps behind the pivot are never undone."""


@dataclass(frozen=True)
class Recipe:
    """An ordered list of steps. Before ``pivot`` has taken effect a failure undoes, after it the move only goes forward."""

    name: str
    steps: tuple[Step, ...]
    pivot: str
    #: called when everything has been undone: gives the server back, with the error that made it necessary
    given_back: Callable[[Run, CausewayError], None]
    #: whether the whole is tried once more after it was rolled back for a passing reason
    tried_again: bool = False
    #: 1 more with each change of ``steps``; a move keeps the version by which it was begun
    version: int = 1
    #: the older versions that these steps can continue from anywhere
    continues: frozenset[int] = frozenset()

    def index(self, step_name: str) -> int:
        return next(place for place, step in enumerate(self.steps) if step.name == step_name)
