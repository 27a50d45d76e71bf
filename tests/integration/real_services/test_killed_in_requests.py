"""The real services are killed in requests of a move: a test for each row of the table in `killed_in_requests`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.real_services.conftest import why_not_here
from tests.integration.real_services.killed_in_requests import ROWS, Row, run
from tests.integration.real_services.sites import Site, site_with_services

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="causeway-killed-", ignore_cleanup_errors=True) as folder,
        site_with_services(Path(folder), "postgresql") as site,
    ):
        yield site


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name} ({row.operation})")
def test_a_service_that_dies_in_a_request_costs_nothing(site: Site, row: Row) -> None:
    result = run(site, row)
    assert result is not None, "no such request came"
    assert result.outcome == "forward"
