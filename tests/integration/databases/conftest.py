"""Each test of databases runs on PostgreSQL and on MariaDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.integration.database_servers import database_server


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def new_database(request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """Makes a database on the server and gives its URL; the same name gives the same database."""
    with database_server(request.param) as url_of:
        yield url_of
