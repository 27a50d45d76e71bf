"""Where a project's servers are, in PostgreSQL and MariaDB."""

from __future__ import annotations

from collections.abc import Callable

from causeway.store import schema
from causeway.store.database import Database
from tests import place_checks


def test_limits_and_places_are_read_together_on_servers(new_database: Callable[[str], str]) -> None:
    database = Database(new_database("places"), "api")
    schema.sync(database, "api")
    place_checks.limits_and_places_are_read_together(database)
    database.close()
