"""Combines questions that come at the same time into one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class _Batch(Generic[T]):
    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.answers: Mapping[str, T] = {}
        self.failure: Exception | None = None


class Batches(Generic[T]):
    """One question is under way at a time. Callers that come meanwhile wait for its end, then share the next question.

    So no caller gets an answer that is older than its question. ``ask``: keys -> key -> answer.
    """

    def __init__(self, ask: Callable[[set[str]], Mapping[str, T]]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._next: _Batch[T] = _Batch()

    def get(self, key: str) -> T | None:
        """The answer for a key; None if there is none. Raises what ``ask`` raises."""
        with self._lock:
            batch = self._next
            batch.keys.add(key)
        with self._turn:
            self._ask_for(batch)
        if batch.failure is not None:
            raise batch.failure
        return batch.answers.get(key)

    def _ask_for(self, batch: _Batch[T]) -> None:
        """Asks for the whole batch, unless another caller of it has asked."""
        with self._lock:
            if self._next is not batch:
                return
            self._next = _Batch()
        try:
            batch.answers = self._ask(batch.keys)
        except Exception as failure:
            # Every caller of the batch gets the error.
            batch.failure = failure
            raise
