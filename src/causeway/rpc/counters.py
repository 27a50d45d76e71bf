"""Counts the RPCs that this process sends, for metrics and for tests that limit the number for an operation."""

from __future__ import annotations

import threading
from collections import Counter

# (kind, topic, method); kind is call, cast or fanout
Key = tuple[str, str, str]

_lock = threading.Lock()
_counts: Counter[Key] = Counter()


def count(kind: str, topic: str, method: str) -> None:
    with _lock:
        _counts[kind, topic, method] += 1


def snapshot() -> Counter[Key]:
    """The counts since the start or the last reset. The difference of two snapshots counts what was sent in between."""
    with _lock:
        return _counts.copy()


def reset() -> None:
    with _lock:
        _counts.clear()
