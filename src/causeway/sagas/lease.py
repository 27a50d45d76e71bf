"""How long a run may act without asking the journal whether it still owns its saga."""

from __future__ import annotations

from causeway.sagas.clock import Clock


class Lease:
    """A lease as its owner sees it. ``seconds``: its length.

    ``asked_at``: the time on the boot clock when the owner asked the journal for the lease. The lease began later than that, and
    nobody else can acquire the saga before it has expired.
    """

    def __init__(self, seconds: float, clock: Clock, asked_at: float) -> None:
        self.seconds = seconds
        self._clock = clock
        self.renewed(asked_at)

    def renewed(self, asked_at: float) -> None:
        self._certain_until = asked_at + self.seconds / 2

    @property
    def is_certain(self) -> bool:
        """Whether it is certain that nobody else has acquired the saga."""
        return self._clock.boot() < self._certain_until
