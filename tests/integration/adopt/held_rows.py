"""Rows of MariaDB that nobody else can write: whoever wants to write them stands still at exactly this point."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from tests.functional.processes.own_process import until

# Seconds until a command that was started on a busy machine has come to its writing.
PATIENCE = 120.0


@contextmanager
def held(url: str, table: str, **equal: object) -> Iterator[Callable[[], object]]:
    """Until the block ends nobody can change these rows, nor add one of them. Without ``equal``: any row of the table.

    Yields what waits until somebody wants to.
    """
    engine = sa.create_engine(url)
    database = re.escape(str(engine.url.database))
    waiting = re.compile(rf"WAITING .*FOR THIS LOCK TO BE GRANTED:\nRECORD LOCKS .* of table `{database}`\.`{table}` ")
    # Tables of the information schema would be shorter, but those who ask them often get answers of before.
    status = sa.text("SHOW ENGINE INNODB STATUS")
    try:
        with engine.connect() as connection:
            known = sa.Table(table, sa.MetaData(), autoload_with=connection)
            query = sa.select(known).where(*(known.columns[name] == value for name, value in equal.items()))
            connection.execute(query.with_for_update()).all()

            def is_wanted() -> bool:
                return waiting.search(connection.execute(status).one()[2]) is not None

            yield lambda: until(is_wanted, bool, f"somebody to write into {table}", PATIENCE)
            connection.rollback()
    finally:
        engine.dispose()
