"""Steps and recipes, of which sagas consist."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from causeway.errors import CausewayError
from causeway.sagas.journal import Write
from causeway.sagas.memory import fields_of, known_at_start
from causeway.sagas.retries import Patience
from causeway.sagas.run import Run

# A recipe may have steps that need less of its run than it has.
R = TypeVar("R", bound=Run[Any, Any], contravariant=True)


@dataclass(frozen=True)
class Condition(Generic[R]):
    """Which sagas of a recipe have a step. ``said``: the same in words, after "only"."""

    said: str
    holds: Callable[[R], bool]

    def only(self, *steps: Step[R]) -> tuple[Step[R], ...]:
        """Gives steps this condition."""
        for step in steps:
            step.condition = self
        return steps


class Step(ABC, Generic[R]):
    """One step of a saga. Both ``do`` and ``undo`` may be interrupted anywhere and repeated.

    An example is in the manual (`causeway.sagas`).
    """

    name: ClassVar[str]
    #: the fields of ``run.memory`` that ``do`` and ``undo`` read, and those that they write (and may read); tests check both.
    #: A field in ``reads`` must be known at the start, or an earlier step must write it (`Recipe.unwritten`)
    reads: ClassVar[frozenset[str]] = frozenset()
    writes: ClassVar[frozenset[str]] = frozenset()
    #: fields that they read even if no earlier step writes them: the default value means that there is nothing
    reads_if_any: ClassVar[frozenset[str]] = frozenset()
    #: the kinds of things that ``do`` makes outside of the journal, and ``undo`` deletes; tests check this
    makes: ClassVar[frozenset[str]] = frozenset()
    #: whether the beginning of the step is the pivot
    pivots: ClassVar[bool] = False
    #: the number of the step's first round, if it transfers in rounds
    first_round: ClassVar[int | None] = None
    #: of a step that only some sagas of its recipe have
    condition: Condition[R] | None = None
    #: see `joining`
    joins: frozenset[str] = frozenset()

    def joining(self, *former: str) -> Self:
        """Lets the step begin with the one before it if that has one of these names (`causeway.sagas.progress`).

        The former step must give the same if it is done again after this one has begun. This one must not transfer in a way of
        which the progress is reported. A recipe that gets such a pair needs a new version.
        """
        self.joins = frozenset(former)
        return self

    def belongs_to(self, run: R) -> bool:
        """Whether the saga has this step. Known when the steps before it are done."""
        return self.condition is None or self.condition.holds(run)

    def where(self, run: R) -> str | None:  # noqa: ARG002
        """The host that the step works on; None if it works on records and services only."""
        return None

    def with_start(self, run: R) -> Write | None:  # noqa: ARG002
        """Returns what else to write in the transaction that begins the step; None for nothing."""
        return None

    def patience(self, run: R) -> Patience:
        """Returns for how long the step is retried if it fails for a reason that may pass."""
        options = run.environment.options
        return Patience(options.patience, options.stuck_retry_interval)

    @abstractmethod
    def do(self, run: R) -> None:
        """Does the step. Writes everything that later steps need into ``run.memory``."""

    def undo(self, run: R) -> None:
        """Undoes what ``do`` did, even if ``do`` was interrupted. Not called for steps behind the pivot."""


@dataclass(frozen=True)
class Former:
    """A recipe of an earlier release, whose sagas another one continues.

    ``version``: the one that can be continued. ``steps``: the names of its steps -> their present names, where they differ.
    """

    name: str
    version: int
    steps: Mapping[str, str]


@dataclass(frozen=True)
class Recipe(Generic[R]):
    """An ordered list of steps. Before ``pivot`` takes effect, a failure undoes the steps; after it a saga only goes forward."""

    name: str
    steps: tuple[Step[R], ...]
    pivot: str
    #: restores what the request changed. Called when all steps were undone, with the error that caused this
    rolled_back: Callable[[R, CausewayError], None]
    #: begins another saga that tries the whole once more, and returns True; or returns False. Called before `rolled_back`
    try_again: Callable[[R, CausewayError], bool] | None = None
    #: undoes what a run did after another process took its saga over. Called when the saga has ended (`causeway.sagas.late`)
    undo_late: Callable[[R], None] | None = None
    #: whether the requester waits for the end. If so, a saga that is taken over before its pivot is undone, because the
    #: requester has seen its request fail
    attended: bool = False
    #: a number that rises by 1 with each change of ``steps``; a saga keeps the version with which it began
    version: int = 1
    #: the older versions whose sagas these steps can continue from any step
    continues: frozenset[int] = frozenset()
    #: recipes of earlier releases whose sagas these steps can continue
    formers: tuple[Former, ...] = ()
    #: the pivot of the sagas that do not have the step ``pivot``
    other_pivot: str = ""
    #: the saga's memory: a dataclass
    memory: type[Any] = dict
    #: versions of the memory's format: the one that this release writes, and the oldest one that it can read
    memory_version: int = 1
    oldest_memory_version: int = 1
    #: the recipe of the finished saga with whose memory this one begins
    after: Recipe[R] | None = None

    def index(self, step_name: str) -> int:
        return next(place for place, step in enumerate(self.steps) if step.name == step_name)

    @property
    def behind_pivot(self) -> int:
        """The place of the first step that is never undone."""
        pivots = [self.index(name) for name in (self.pivot, self.other_pivot) if name]
        return max(pivots) + 1 if pivots else len(self.steps)

    def read_by(self, step: Step[R]) -> frozenset[str]:
        """The fields of this recipe's memory that a step must be able to read."""
        return fields_of(self.memory, step.reads)

    def unwritten(self) -> list[str]:
        """Returns ``STEP reads FIELD`` for each field that no earlier step writes: the order of those steps is wrong."""
        written = set(known_at_start(self.memory))
        if self.after is not None:
            written.update(*(step.writes for step in self.after.steps))
        found = []
        for step in self.steps:
            found += [f"{step.name} reads {name}" for name in sorted(self.read_by(step) - step.writes - written)]
            written |= step.writes
        return found
