"""The interface of a journal: a table of sagas and one of their steps, in a database that all owners share.

Every write is one transaction. Whether a lease has expired is decided by the database's clock alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any, Protocol, TypeVar

from causeway.model.sagas import Saga, SagaState, StepRecord

S = TypeVar("S", bound=Saga)

# Writes something in a transaction of the journal, with the connection that it gets.
Write = Callable[[Any], Any]


class Journal(Protocol[S]):
    """Each of these raises DatabaseFailed if the database does not do what it is asked to."""

    def acquire(self, saga_id: str, owner: str, lease: float, *, former: Set[str]) -> S | None:
        """Gives the saga to ``owner`` for ``lease`` seconds and raises its epoch, which fences off the former owner.

        A saga that was only requested has no owner yet: the first `record` with ``takes`` makes it its owner's.

        Returns None if the saga has ended, was not accepted, waits for the end of another one, or another owner's lease still
        runs. ``former``: owners that are known to be dead.
        """

    def begin(self, saga: S, *, started: StepRecord, lease: float, also: Write | None) -> None:
        """Writes a saga that is its owner's from the beginning, with its first step, together with what ``also`` writes.

        Raises TakenOver if it is there: written by an attempt whose answer was lost, and another owner has acquired it.
        """

    def renew(self, owner: str, saga_ids: list[str], lease: float) -> None:
        """Renews the leases of those that ``owner`` still has."""

    def get(self, saga_id: str) -> S:
        """Raises NotFound."""

    def states(self, saga_ids: Iterable[str]) -> dict[str, SagaState]:
        """saga -> its state, of those that there are."""

    def steps(self, saga_id: str) -> list[StepRecord]:
        """What the saga did so far, in order."""

    def record(
        self,
        saga: S,
        *,
        ended: StepRecord | None,
        started: StepRecord | None,
        unless_cancelled: bool,
        takes: bool,
        lease: float,
        also: Write | None,
    ) -> None:
        """Writes the saga with the step that ended and the one that begins, together with what ``also`` writes.

        ``takes``: the first write of the owner of a saga that was only requested.
        ``lease``: seconds that the saga stays with its owner; without an owner, seconds during which nobody acquires it.
        Raises Cancelled if that was asked for and ``unless_cancelled``; TakenOver if another owner has it (its epoch is higher),
        or if it has a state from which it may not come to the present one.
        """

    def is_recorded(self, saga: S, *, ended: StepRecord | None, started: StepRecord | None) -> bool:
        """Whether a `record` whose answer was lost took effect."""

    def check_wanted(self, saga: S) -> None:
        """Raises Cancelled, StateChanged (what it works on is to be deleted) or TakenOver if the saga is not wanted any more."""

    def abandoned(self, mine: Set[str], lease: float, *, in_hand: Set[str], knowledge: str) -> list[S]:
        """Sagas that nobody works on: their lease has expired, their pause is over, or they belong to one of ``mine``.

        Without those ``in_hand``, those requested less than ``lease`` seconds ago, those that wait for another one's end, and
        those that somebody with the same ``knowledge`` has parked.
        """

    def park(self, saga: S, parked: str) -> None:
        """Releases a saga that the caller's release can't run."""

    def close(self) -> None:
        """Closes the connections that are the journal's own."""
