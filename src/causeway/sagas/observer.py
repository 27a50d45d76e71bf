"""The interface for observers of an engine: metrics and injected faults. This implementation does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from causeway.model.sagas import Saga, StepRecord


class Observer:
    def reach(self, point: str) -> None:
        """Called when the engine reaches a point, named ``<recipe>.<step>.<do or undo>.<before or after>``.

        It may raise, or never return.
        """

    def step_ended(self, saga: Saga, step: StepRecord) -> None:
        """Called when an attempt of a step has ended. ``step.state`` says how."""

    def saga_ended(self, saga: Saga) -> None:
        """Called when the saga has ended: it is done, or was rolled back."""

    @contextmanager
    def working_on(self, context: Any, saga_id: str) -> Iterator[None]:  # noqa: ARG002
        """Encloses the work of the thread on a saga, on behalf of ``context``."""
        yield

    def hangs(self, saga_id: str) -> bool:  # noqa: ARG002
        """Whether a test makes the saga's owner look dead. If so, the keeper does not renew its lease."""
        return False
