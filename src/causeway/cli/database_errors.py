"""Errors of SQLAlchemy, for commands that may run without it: a compute has no databases, and should not load it for this."""

from __future__ import annotations

import sys


def database_errors() -> tuple[type[Exception], ...]:
    """What databases raise; nothing where no database can have been opened. To be asked by an ``except``."""
    loaded = sys.modules.get("sqlalchemy.exc")
    return () if loaded is None else (loaded.SQLAlchemyError,)


def cause_of(failure: Exception) -> BaseException | None:
    """The driver's own error behind one of SQLAlchemy's; None: there is none."""
    cause = getattr(failure, "orig", None)
    return cause if isinstance(cause, BaseException) else None


__all__ = ["cause_of", "database_errors"]
