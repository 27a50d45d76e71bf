"""Makes each alias of Placement's tables once in this process, not with every statement.

An alias copies all columns of its table. Placement makes some twenty of them for a claim, always the same ones: a sixth of the
claim's time. An alias is never changed, so statements can share it. They could not share an alias from which both a statement
and a subquery in its WHERE read: SQLAlchemy would take both for the same row. Placement 16 has no such subquery.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import sqlalchemy
from placement.objects import (
    allocation,
    allocation_candidate,
    consumer,
    project,
    research_context,
    resource_provider,
    trait,
    user,
)

MODULES: tuple[Any, ...] = (
    allocation,
    allocation_candidate,
    consumer,
    project,
    research_context,
    resource_provider,
    trait,
    user,
)
# Some forty aliases are always the same. The limit is for those that long lists of aggregates or traits number.
MOST = 200


class _Aliases:
    def __init__(self) -> None:
        self._known: dict[tuple[Any, str], Any] = {}
        self._making = threading.Lock()

    def alias(self, table: Any, name: str | None = None, **options: Any) -> Any:
        if name is None or options or not isinstance(table, sqlalchemy.Table):
            return sqlalchemy.alias(table, name=name, **options)
        found = self._known.get((table, name))
        if found is None:
            with self._making:
                found = sqlalchemy.alias(table, name=name)
                # An alias copies its columns at their first use, which two threads must not do at once.
                found.c.keys()
                if len(self._known) < MOST:
                    found = self._known.setdefault((table, name), found)
        return found


def make_once() -> Callable[[], None]:
    """Starts this. Returns a function that undoes it."""
    shared = ModuleType(sqlalchemy.__name__)
    shared.__dict__.update(vars(sqlalchemy))
    shared.__dict__["alias"] = _Aliases().alias
    for module in MODULES:
        module.sa = shared

    def undo() -> None:
        for module in MODULES:
            module.sa = sqlalchemy

    return undo
