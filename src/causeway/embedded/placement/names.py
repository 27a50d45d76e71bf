"""Remembers in this process what Placement's names stand for, which it otherwise reads from its database with each request.

A request that looks for hosts read all traits and all resource classes, some four hundred rows. A claim read the resource
classes, and for each of its consumers the project and the user, each in a transaction of its own.

**Only for a database that no other process writes.** What is remembered of traits and classes ends where Placement clears its own
caches: after each change of one. A name that is not known is looked up in the database, by Placement's own code. Projects and
users are never deleted, nor changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from placement import attribute_cache
from placement.objects import project, user

# Placement's caches by their names in `attribute_cache`, and functions that read one row by the name that others gave it.
CACHES = ("TraitCache", "ResourceClassCache")
READERS: tuple[tuple[Any, str], ...] = (
    (project, "_get_project_by_external_id"),
    (user, "_get_user_by_external_id"),
)
# What a Placement cache consists of.
CONTENT = ("_id_cache", "_str_cache", "_all_cache")
# Projects and users that are remembered, each.
MOST = 10_000


class _Content:
    """What a cache contains since the latest change, if a request has read it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, Any] = {}
        self._changes = 0

    def look(self) -> tuple[dict[str, Any], int]:
        """The content, and after how many changes."""
        with self._lock:
            return self._values, self._changes

    def put(self, values: dict[str, Any], changes: int | None) -> None:
        """``changes``: how many there had been before the transaction began that read the values."""
        with self._lock:
            if changes == self._changes:
                self._values = values

    def clear(self) -> None:
        with self._lock:
            self._values = {}
            self._changes += 1


def _sharing(original: Any) -> Any:
    content = _Content()

    class Shared(original):  # type: ignore[misc]
        """A request's cache, which begins with what others have read."""

        # None: being made, for which Placement's class clears it.
        _changes: int | None = None

        def __init__(self, ctx: Any) -> None:
            super().__init__(ctx)
            # Requests make their caches before they begin transactions.
            values, self._changes = content.look()
            # Nobody changes these; they are replaced.
            self.__dict__.update(values)

        def clear(self) -> None:
            super().clear()
            if self._changes is not None:
                content.clear()

        def _refresh_from_db(self, ctx: Any) -> None:
            super()._refresh_from_db(ctx)
            content.put({name: getattr(self, name) for name in CONTENT}, self._changes)

    return Shared


def _remembering(read: Any) -> Any:
    known: dict[str, dict[str, Any]] = {}

    def remembered(ctx: Any, external_id: str) -> dict[str, Any]:
        row = known.get(external_id)
        if row is None:
            row = read(ctx, external_id)
            if len(known) < MOST:
                known[external_id] = row
        return dict(row)

    return remembered


def remember() -> Callable[[], None]:
    """Starts this. Returns a function that undoes it."""
    makers: list[tuple[Any, str, Callable[[Any], Any]]] = [
        *((attribute_cache, name, _sharing) for name in CACHES),
        *((module, name, _remembering) for module, name in READERS),
    ]
    replaced = []
    for module, name, make in makers:
        # What a later Placement calls differently is only not remembered; a test says so.
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, make(original))
            replaced.append((module, name, original))

    def undo() -> None:
        for module, name, original in replaced:
            setattr(module, name, original)

    return undo
