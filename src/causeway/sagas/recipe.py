"""Steps and recipes: what a saga consists of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from causeway.errors import CausewayError
from causeway.sagas.journal import Write
from causeway.sagas.memory import known_at_start
from causeway.sagas.retries import Patience
from causeway.sagas.run import Run

R = TypeVar("R", bound=Run[Any, Any])


class Step(ABC, Generic[R]):
    """One step of a saga. ``do`` and ``undo`` may each be repeated after they were interrupted anywhere.

    An example is in the manual (`causeway.sagas`).
    """

    name: ClassVar[str]
    #: the fields of ``run.memory`` that ``do`` and ``undo`` read, and those that they write (and may read); tests hold them to
    #: it. What is read was given at the start or written by a step before (`Recipe.unwritten`)
    reads: ClassVar[frozenset[str]] = frozenset()
    writes: ClassVar[frozenset[str]] = frozenset()
    #: fields that they read whether or not a step before has written them: their defaults say that there is nothing
    reads_if_any: ClassVar[frozenset[str]] = frozenset()
    #: kinds of things that ``do`` makes outside of the journal; before the pivot ``undo`` deletes them. Held to it by tests
    makes: ClassVar[frozenset[str]] = frozenset()
    #: the pivot takes effect with the step's beginning, in one transaction
    pivots: ClassVar[bool] = False
    #: it transfers in rounds, and begins with this one
    first_round: ClassVar[int | None] = None

    def where(self, run: R) -> str | None:  # noqa: ARG002
        """The host that the step works on; None if it works on records and services only."""
        return None

    def with_start(self, run: R) -> Write | None:  # noqa: ARG002
        """What is written in the transaction in which the step begins; None: nothing more."""
        return None

    def patience(self, run: R) -> Patience:
        """How long the step is retried that fails for a passing reason."""
        options = run.environment.options
        return Patience(options.patience, options.stuck_retry_interval)

    @abstractmethod
    def do(self, run: R) -> None:
        """Takes the step. What it learns goes into ``run.memory``."""

    def undo(self, run: R) -> None:
        """Undoes whatever ``do`` did, as far as it came. Steps behind the pivot are never undone."""


@dataclass(frozen=True)
class Recipe(Generic[R]):
    """An ordered list of steps. Before ``pivot`` has taken effect a failure undoes, after it the saga only goes forward."""

    name: str
    steps: tuple[Step[R], ...]
    pivot: str
    #: called when everything has been undone, with the error that made it necessary: restores what the request changed
    rolled_back: Callable[[R, CausewayError], None]
    #: has the whole tried once more after it was rolled back, and returns True; False: `rolled_back` is called
    try_again: Callable[[R, CausewayError], bool] | None = None
    #: undoes what a run did too late whose saga was taken over and has ended since (see `causeway.sagas.late`)
    undo_late: Callable[[R], None] | None = None
    #: who asks waits for the end: one that is taken over before its pivot is undone, because they got the answer that it failed
    attended: bool = False
    #: 1 more with each change of ``steps``; a saga keeps the version by which it was begun
    version: int = 1
    #: the older versions that these steps can continue from anywhere
    continues: frozenset[int] = frozenset()
    #: what the saga remembers: a dataclass
    memory: type[Any] = dict
    #: how the memory is to be read: the version that is written, and the oldest that can be read
    memory_version: int = 1
    oldest_memory_version: int = 1
    #: the recipe of the finished saga with whose memory this one begins
    after: Recipe[R] | None = None

    def index(self, step_name: str) -> int:
        return next(place for place, step in enumerate(self.steps) if step.name == step_name)

    def unwritten(self) -> list[str]:
        """``STEP reads FIELD``, of fields that nobody has written when the step begins: the order of the steps is wrong."""
        written = set(known_at_start(self.memory))
        if self.after is not None:
            written.update(*(step.writes for step in self.after.steps))
        found = []
        for step in self.steps:
            found += [f"{step.name} reads {name}" for name in sorted(step.reads - step.writes - written)]
            written |= step.writes
        return found
