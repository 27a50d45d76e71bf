"""How far transfers have come, in PostgreSQL and MariaDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from causeway.store import schema
from causeway.store.database import Database
from tests import progress_checks


@pytest.fixture
def database(new_database: Callable[[str], str]) -> Iterator[Database]:
    database = Database(new_database("progress"), "api")
    schema.sync(database, "api")
    yield database
    database.close()


@pytest.mark.parametrize(
    "check",
    [
        progress_checks.what_is_reported_is_shown_and_summed_while_its_step_runs,
        progress_checks.moves_that_send_share_what_their_drain_may,
    ],
    ids=lambda check: check.__name__,
)
def test_reported_progress_holds_on_database_servers(database: Database, check: Callable[[Database], None]) -> None:
    check(database)
