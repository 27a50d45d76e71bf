"""Errors of SQLAlchemy, also for commands that run where it is not installed: a compute has no databases."""

from __future__ import annotations

try:
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError
except ImportError:

    class SQLAlchemyError(Exception):  # type: ignore[no-redef]
        """Raised by nobody."""

    class DBAPIError(SQLAlchemyError):  # type: ignore[no-redef]
        """Raised by nobody."""

        orig: BaseException | None = None


__all__ = ["DBAPIError", "SQLAlchemyError"]
