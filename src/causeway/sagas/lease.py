"""How long a run may act without asking the journal whether its saga is still its own."""

from __future__ import annotations

from causeway.sagas.clock import Clock


class Lease:
    """``asked_at``: the boot clock's time when the lease was asked for, before the journal answered.

    Nobody else acquires a saga before its lease has expired, and that began when it was asked for.
    """

    def __init__(self, seconds: float, clock: Clock, asked_at: float) -> None:
        self.seconds = seconds
        self._clock = clock
        self.renewed(asked_at)

    def renewed(self, asked_at: float) -> None:
        self._certain_until = asked_at + self.seconds / 2

    @property
    def is_certain(self) -> bool:
        """Whether nobody else can have acquired the saga yet."""
        return self._clock.boot() < self._certain_until
