"""The interface through which metrics and injected faults observe an engine. This implementation does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from causeway.model.sagas import Saga, StepRecord


class Observer:
    def reach(self, point: str) -> None:
        """The engine has reached a point, named ``<recipe>.<step>.<do or undo>.<before or after>``.

        May raise, or never return.
        """

    def step_ended(self, saga: Saga, step: StepRecord) -> None:
        """An attempt of a step has ended. ``step.state`` says how."""

    def saga_ended(self, saga: Saga) -> None:
        """The saga has ended: it is done, or was rolled back."""

    @contextmanager
    def working_on(self, context: Any, saga_id: str) -> Iterator[None]:  # noqa: ARG002
        """The thread works on a saga until the block ends, on behalf of ``context``."""
        yield

    def hangs(self, saga_id: str) -> bool:  # noqa: ARG002
        """Whether a test makes the saga's owner look dead, so that its lease is not renewed."""
        return False
