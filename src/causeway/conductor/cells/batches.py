"""Combines queries that callers make at the same time into one."""

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
    """Runs one query at a time. Callers that come meanwhile wait until it has ended, and then share the next query.

    So no caller gets an answer from before its call. ``ask``: the query: keys -> key -> answer.
    """

    def __init__(self, ask: Callable[[set[str]], Mapping[str, T]]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._next: _Batch[T] = _Batch()

    def get(self, key: str) -> T | None:
        """Returns the answer for a key; None if there is none. Raises what ``ask`` raises."""
        with self._lock:
            batch = self._next
            batch.keys.add(key)
        with self._turn:
            self._ask_for(batch)
        if batch.failure is not None:
            raise batch.failure
        return batch.answers.get(key)

    def _ask_for(self, batch: _Batch[T]) -> None:
        """Runs the query for the whole batch, unless another caller of the batch has done so."""
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
