"""Inserts or updates rows in one statement, on each kind of database."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite


@cache
def upsert_of(dialect: str, table: sa.Table) -> sa.Insert:
    """A statement that inserts rows, and updates those with the same primary key. Every column must be given."""
    others = [column.name for column in table.columns if not column.primary_key]
    if dialect in ("mysql", "mariadb"):
        statement = mysql.insert(table)
        return statement.on_duplicate_key_update({name: statement.inserted[name] for name in others})
    insert: Any = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement = insert(table)
    updated: sa.Insert = statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns), set_={name: statement.excluded[name] for name in others}
    )
    return updated
