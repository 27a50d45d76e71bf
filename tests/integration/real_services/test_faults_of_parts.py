"""What happens when real parts fail in the middle of a move: one test a row of the table in `faults_of_parts`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.real_services.conftest import why_not_here
from tests.integration.real_services.faults_of_parts import ROWS, Row, rows, run
from tests.integration.real_services.sites import Site, site_with_services

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="class")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """A cloud beside the real services, all of which keep what they know in one database server."""
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="causeway-faults-", ignore_cleanup_errors=True) as folder,
        site_with_services(Path(folder), request.cls.database) as site,
    ):
        yield site


class TestOnPostgresql:
    """All of it."""

    database = "postgresql"

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
    def test_everything_settles_by_itself(self, site: Site, row: Row) -> None:
        assert run(site, row).forward, "the move was rolled back"


class TestOnMariadb:
    """What this server and its driver do differently."""

    database = "mariadb"

    @pytest.mark.parametrize("row", rows(["database"], real=True), ids=lambda row: row.name)
    def test_everything_settles_by_itself(self, site: Site, row: Row) -> None:
        assert run(site, row).forward, "the move was rolled back"
