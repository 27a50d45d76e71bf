"""The real services are killed in requests of operations: a test for each row of the table in `killed_in_requests`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.real_services.conftest import killed_site
from tests.integration.real_services.killed_in_requests import Row, rows_on, run
from tests.integration.real_services.sites import Site

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with killed_site("postgresql") as site:
        yield site


@pytest.mark.parametrize("row", rows_on("postgresql"), ids=lambda row: row.name)
def test_a_service_that_dies_in_a_request_costs_nothing(site: Site, row: Row) -> None:
    result = run(site, row)
    assert result is not None, "no such request came"
    assert result.outcome in row.ends
