"""The database's time: the one clock that all its users share.

Whether a lease has expired must not depend on a host's clock. So leases are written and compared inside the database, with
`utc_now`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from causeway.store.columns import Time
from causeway.store.database import Database


class utc_now(FunctionElement[datetime]):
    """SQL for now, in UTC without a zone, with fractions of a second; with an argument, seconds from now: ``utc_now(-2.5)``."""

    name = "utc_now"
    type = Time
    inherit_cache = True

    def __init__(self, seconds: float | sa.ColumnElement[Any] = 0.0) -> None:
        super().__init__(sa.literal(seconds, sa.Float) if isinstance(seconds, (int, float)) else seconds)


def seconds(name: str) -> sa.BindParameter[float]:
    """A parameter for `utc_now` in statements that are made once."""
    return sa.bindparam(name, type_=sa.Float)


@compiles(utc_now, "sqlite")
def _sqlite(element: utc_now, compiler: SQLCompiler, **kw: Any) -> str:
    # Six digits, as SQLAlchemy writes times: they are compared as texts.
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', ({compiler.process(element.clauses, **kw)}) || ' seconds')"


@compiles(utc_now, "postgresql")
def _postgresql(element: utc_now, compiler: SQLCompiler, **kw: Any) -> str:
    # Not now(), which is the beginning of the transaction.
    after = compiler.process(element.clauses, **kw)
    return f"((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => {after}))"


@compiles(utc_now, "mysql", "mariadb")
def _mysql(element: utc_now, compiler: SQLCompiler, **kw: Any) -> str:
    return f"(UTC_TIMESTAMP(6) + INTERVAL {compiler.process(element.clauses, **kw)} SECOND)"


def read(database: Database) -> datetime:
    """The time of a database, in UTC without a zone."""
    with database.read() as connection:
        return connection.execute(sa.select(utc_now())).scalar_one()
