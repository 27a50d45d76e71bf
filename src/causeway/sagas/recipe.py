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
    #: the fields of ``run.memory`` that ``do`` and ``undo`` read, and those that they write (and may read); tests check this.
    #: A field that is read was given at the start or written by an earlier step (`Recipe.unwritten`)
    reads: ClassVar[frozenset[str]] = frozenset()
    writes: ClassVar[frozenset[str]] = frozenset()
    #: fields that they read even if no earlier step has written them: the default means that there is nothing
    reads_if_any: ClassVar[frozenset[str]] = frozenset()
    #: kinds of things that ``do`` makes outside of the journal; before the pivot ``undo`` deletes them. Tests check this
    makes: ClassVar[frozenset[str]] = frozenset()
    #: the beginning of the step is the pivot, in one transaction
    pivots: ClassVar[bool] = False
    #: the number of its first round, if it transfers in rounds
    first_round: ClassVar[int | None] = None

    def where(self, run: R) -> str | None:  # noqa: ARG002
        """The host that the step works on; None if it works on records and services only."""
        return None

    def with_start(self, run: R) -> Write | None:  # noqa: ARG002
        """What else to write in the transaction that begins the step; None for nothing."""
        return None

    def patience(self, run: R) -> Patience:
        """How long the step is retried if it fails for a passing reason."""
        options = run.environment.options
        return Patience(options.patience, options.stuck_retry_interval)

    @abstractmethod
    def do(self, run: R) -> None:
        """Does the step. Writes what later steps need into ``run.memory``."""

    def undo(self, run: R) -> None:
        """Undoes what ``do`` did, complete or not. Steps behind the pivot are never undone."""


@dataclass(frozen=True)
class Recipe(Generic[R]):
    """An ordered list of steps. Before ``pivot`` has taken effect a failure undoes them; after it the saga only goes forward."""

    name: str
    steps: tuple[Step[R], ...]
    pivot: str
    #: called when everything was undone, with the error that caused this: restores what the request changed
    rolled_back: Callable[[R, CausewayError], None]
    #: called before `rolled_back`: has the whole tried once more and returns True, or returns False
    try_again: Callable[[R, CausewayError], bool] | None = None
    #: undoes what a run did after its saga was taken over, once that has ended (see `causeway.sagas.late`)
    undo_late: Callable[[R], None] | None = None
    #: the requester waits for the end. If the saga is taken over before its pivot it is undone, since the requester saw it fail
    attended: bool = False
    #: rises by 1 with each change of ``steps``; a saga keeps the version with which it began
    version: int = 1
    #: the older versions that these steps can continue from anywhere
    continues: frozenset[int] = frozenset()
    #: the saga's memory: a dataclass
    memory: type[Any] = dict
    #: the format of the memory: the version that is written, and the oldest one that can be read
    memory_version: int = 1
    oldest_memory_version: int = 1
    #: the recipe of the finished saga whose memory this one begins with
    after: Recipe[R] | None = None

    def index(self, step_name: str) -> int:
        return next(place for place, step in enumerate(self.steps) if step.name == step_name)

    def unwritten(self) -> list[str]:
        """``STEP reads FIELD``, for each field that no earlier step has written: the order of the steps is wrong."""
        written = set(known_at_start(self.memory))
        if self.after is not None:
            written.update(*(step.writes for step in self.after.steps))
        found = []
        for step in self.steps:
            found += [f"{step.name} reads {name}" for name in sorted(step.reads - step.writes - written)]
            written |= step.writes
        return found
