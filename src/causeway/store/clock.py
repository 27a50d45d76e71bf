"""The database's time: the one clock that all who share a database see alike.

Whether a lease is over must not depend on whose clock is asked. So leases are written and compared inside the database,
with `utc_now`; no host's time goes into it.
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
    """Now, in UTC without a zone and with fractions of a second; or so many seconds from now: ``utc_now(-2.5)``."""

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
    # Not now(): that is when the transaction began.
    after = compiler.process(element.clauses, **kw)
    return f"((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => {after}))"


@compiles(utc_now, "mysql", "mariadb")
def _mysql(element: utc_now, compiler: SQLCompiler, **kw: Any) -> str:
    return f"(UTC_TIMESTAMP(6) + INTERVAL {compiler.process(element.clauses, **kw)} SECOND)"


def read(database: Database) -> datetime:
    """What time it is for a database, in UTC without a zone."""
    with database.read() as connection:
        return connection.execute(sa.select(utc_now())).scalar_one()
