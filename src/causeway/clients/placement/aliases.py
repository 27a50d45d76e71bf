"""Placement in this process makes each alias of its tables once, not with every statement.

An alias copies all columns of its table. Placement makes some twenty of them for a claim, always the same: a sixth of what the
claim takes. An alias is never changed, so statements can share it. What they could not share is one that a statement and a
subquery in its WHERE both read from: SQLAlchemy would take it for the same row. Placement 16 has no such subquery.
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
# Some forty are always the same; those that a long list of aggregates or traits numbers are not kept for ever.
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
                # Its columns are copied when they are first asked for: no two threads are to do so at once.
                found.c.keys()
                if len(self._known) < MOST:
                    found = self._known.setdefault((table, name), found)
        return found


def make_once() -> Callable[[], None]:
    """From now on; the answer undoes it."""
    shared = ModuleType(sqlalchemy.__name__)
    shared.__dict__.update(vars(sqlalchemy))
    shared.__dict__["alias"] = _Aliases().alias
    for module in MODULES:
        module.sa = shared

    def undo() -> None:
        for module in MODULES:
            module.sa = sqlalchemy

    return undo
