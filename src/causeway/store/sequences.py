"""Numbers of rows that were given, where the database would have made them."""

from __future__ import annotations

import sqlalchemy as sa


def advance(connection: sa.Connection, table: sa.Table | sa.TableClause) -> None:
    """Lets the database count on from the highest ``id`` of the table. SQLite and MariaDB do so by themselves."""
    if connection.dialect.name == "postgresql":
        highest = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 0) + 1).scalar_subquery()
        connection.execute(sa.select(sa.func.setval(sa.func.pg_get_serial_sequence(table.name, "id"), highest, False)))
