"""What was accepted of each owner of limits, so that requests which are counted at the same time pass no limit together.

What is in use is counted in several databases, without a lock. So a request reads the owner's total first, counts, and notes what
it leaves free of each limit. The transaction that accepts it adds to the total what it takes (`add_in`). If the total has grown
meanwhile by more than was left free, the request is counted again. Far from the limits this never happens, and it costs one
statement (three for the first request). Totals only grow: what is deleted is no longer counted, and makes no room here.

What one statement of this database counts needs no total: `hold_in` makes others wait until the transaction has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from causeway import errors
from causeway.store.api_tables import AcceptedTotals
from causeway.store.database import Database

TABLE: sa.Table = AcceptedTotals.__table__  # type: ignore[assignment]
_OF_OWNER = TABLE.c.owner == sa.bindparam("of_owner")
_READ = sa.select(TABLE.c.version, TABLE.c.amounts).where(_OF_OWNER)
_READ_AND_HOLD = _READ.with_for_update()
_ADD = (
    TABLE.update()
    .where(_OF_OWNER, TABLE.c.version == sa.bindparam("seen"))
    .values(version=sa.bindparam("seen") + 1, amounts=sa.bindparam("total", type_=TABLE.c.amounts.type))
)


@dataclass(frozen=True)
class Total:
    """All that was ever accepted of an owner: resource -> amount. ``version`` 0: nothing yet."""

    version: int = 0
    amounts: Mapping[str, int] = field(default_factory=dict)


def of_project(project_id: str) -> str:
    """The owner of a project's limits."""
    return f"project:{project_id}"


def of_user(user_id: str) -> str:
    """The owner of a user's limits, in all projects."""
    return f"user:{user_id}"


def read(database: Database, owner: str) -> Total:
    with database.read() as connection:
        return _total(connection.execute(_READ, {"of_owner": owner}).one_or_none())


def _total(row: sa.Row[Any] | None) -> Total:
    return Total() if row is None else Total(row.version, row.amounts)


def add_in(
    connection: sa.Connection, owner: str, seen: Total, taken: Mapping[str, int], free: Mapping[str, int]
) -> None:
    """Adds what is accepted in this transaction. ``seen``: the total before the count, which left ``free`` after this request.

    Raises AcceptedMeanwhile if too much was accepted since: the request has to be counted again.
    """
    if seen.version:
        values = {"of_owner": owner, "seen": seen.version, "total": _sum(seen, taken)}
        if connection.execute(_ADD, values).rowcount:
            return
    else:
        hold_in(connection, owner)
    present = _total(connection.execute(_READ_AND_HOLD, {"of_owner": owner}).one_or_none())
    grown = {name: present.amounts.get(name, 0) - seen.amounts.get(name, 0) for name in free}
    if any(grown[name] > left for name, left in free.items()):
        raise errors.AcceptedMeanwhile(
            "Other requests that use up the quota were accepted at the same moment. Try again."
        )
    connection.execute(_ADD, {"of_owner": owner, "seen": present.version, "total": _sum(present, taken)})


def _sum(total: Total, taken: Mapping[str, int]) -> dict[str, int]:
    return dict(Counter(total.amounts) + Counter(taken))


def hold_in(connection: sa.Connection, owner: str) -> None:
    """Makes others who call this for the owner, or add to its total, wait until the transaction has ended."""
    connection.execute(_hold(connection.dialect.name), {"owner": owner, "version": 0, "amounts": {}})


@cache
def _hold(dialect: str) -> sa.Insert:
    """Inserts a row, or locks the one that is there. (MariaDB's INSERT IGNORE would only share it: then others deadlock.)"""
    if dialect in ("mysql", "mariadb"):
        return mysql.insert(TABLE).on_duplicate_key_update(version=TABLE.c.version)
    insert: Any = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement: sa.Insert = insert(TABLE).on_conflict_do_update(
        index_elements=[TABLE.c.owner], set_={"version": TABLE.c.version}
    )
    return statement
