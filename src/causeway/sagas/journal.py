"""The interface of a journal: a table of sagas and one of their steps, in a database that all owners share.

Every write is one transaction. Only the database's clock decides whether a lease has expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any, Protocol, TypeVar

from causeway.model.sagas import Saga, SagaState, StepRecord

S = TypeVar("S", bound=Saga)

# It gets a connection, and writes in the connection's transaction.
Write = Callable[[Any], Any]


class Journal(Protocol[S]):
    """Each method raises DatabaseFailed if the database fails."""

    def acquire(self, saga_id: str, owner: str, lease: float, *, former: Set[str]) -> S | None:
        """Acquires the saga for ``owner`` for ``lease`` seconds, and raises its epoch, which fences off the former owner.

        Returns the saga; None if it has ended, was not accepted, waits for the end of another one, or is leased to another owner.
        ``former``: owners that are known to be dead. A requested saga gets no owner in the journal yet: the first `record` with
        ``takes`` sets it.
        """

    def begin(self, saga: S, *, started: StepRecord, lease: float, also: Write | None) -> None:
        """Writes a new saga with its owner and its first step, together with what ``also`` writes.

        Raises TakenOver if an earlier attempt, whose answer was lost, has written it and another owner has acquired it.
        """

    def renew(self, owner: str, saga_ids: list[str], lease: float) -> None:
        """Renews the leases of those of the sagas that ``owner`` still owns, for ``lease`` seconds."""

    def get(self, saga_id: str) -> S:
        """Returns the saga. Raises NotFound."""

    def states(self, saga_ids: Iterable[str]) -> dict[str, SagaState]:
        """Returns saga -> state, for the sagas that exist."""

    def steps(self, saga_id: str) -> list[StepRecord]:
        """Returns the steps of the saga so far, in order."""

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

        ``takes``: this is the owner's first write of a requested saga. ``lease``: seconds for which the owner has the saga; if it
        has no owner, seconds for which nobody can acquire it. Raises Cancelled if ``unless_cancelled`` and the saga was
        cancelled; TakenOver if another owner has acquired the saga (its epoch is higher), or if its state in the journal can't
        change to the new one.
        """

    def is_recorded(self, saga: S, *, ended: StepRecord | None, started: StepRecord | None) -> bool:
        """Whether a `record` with these arguments took effect. Called when its answer was lost."""

    def check_wanted(self, saga: S) -> None:
        """Raises Cancelled, StateChanged (its server is being deleted) or TakenOver if the saga is no longer wanted."""

    def abandoned(self, mine: Set[str], lease: float, *, at_work: Set[str], knowledge: str) -> list[S]:
        """Returns the sagas that no process works on: their lease has expired, their pause is over, or one of ``mine`` owns them.

        Excludes the sagas ``at_work``, those requested less than ``lease`` seconds ago, those that wait for the end of another
        saga, and those that a process with the same ``knowledge`` has parked.
        """

    def park(self, saga: S, parked: str) -> None:
        """Releases a saga that the caller's release can't run. ``parked``: the release's knowledge, and why it can't."""

    def close(self) -> None:
        """Closes the journal's own connections."""
