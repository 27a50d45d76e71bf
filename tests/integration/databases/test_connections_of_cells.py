"""A server of databases sees no more connections than a process may have to the cells together."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa

from causeway.store.connections import ConnectionBudget
from causeway.store.database import Database

CELLS, MOST = 12, 5
# A server learns a little later that its client is gone.
LEAVING = 5


def test_the_server_counts_no_more_than_the_budget(new_database: Callable[[str], str]) -> None:
    urls = [new_database(f"many{number}") for number in range(CELLS)]
    budget = ConnectionBudget(MOST)
    databases = [Database(url, f"cell{number}", budget=budget) for number, url in enumerate(urls)]
    names = [sa.make_url(url).database for url in urls]
    watcher = sa.create_engine(urls[0], isolation_level="AUTOCOMMIT")
    if watcher.dialect.name == "postgresql":
        count = sa.text("SELECT count(*) FROM pg_stat_activity WHERE datname = ANY(:names) AND pid <> pg_backend_pid()")
        values: dict[str, object] = {"names": names}
    else:
        count = sa.text(
            "SELECT count(*) FROM information_schema.processlist WHERE FIND_IN_SET(db, :names) AND id <> connection_id()"
        )
        values = {"names": ",".join(map(str, names))}
    with ThreadPoolExecutor(10) as pool, watcher.connect() as looking:
        asked = [pool.submit(databases[turn % CELLS].ping) for turn in range(10 * CELLS)]
        while not all(one.done() for one in asked):
            assert looking.execute(count, values).scalar_one() <= MOST + LEAVING
        for one in asked:
            one.result()
    watcher.dispose()
    assert budget.open == MOST
    for database in databases:
        database.close()
    assert budget.open == 0
