"""Pages made of mappings are those that all cells make, in the order that PostgreSQL and MariaDB have for strings, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from causeway.store import listing, mapped_pages
from causeway.store.conditions import OneOf
from causeway.store.listing import ServerQuery, SortKey
from tests.unit.store.listed_cloud import ALIVE, check_everything, with_everything
from tests.unit.store.test_mapped_pages import SORTS, MappedCloud


@pytest.fixture(scope="module")
def cloud(new_database: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[MappedCloud]:
    cloud = MappedCloud(tmp_path_factory.mktemp("cloud"), lambda name: new_database(f"pages_{name}"))
    for number in range(40):
        server = cloud.server(f"s{number}", number % 2, at=number % 3, user_id="Ub"[number % 2])
        if number % 5 == 0:
            cloud.copy(server, 1 - number % 2)
        if number % 7 == 0:
            cloud.delete(server, number % 2, noted=number % 2 == 0)
    cloud.build_request("new", at=1)
    yield cloud
    cloud.close()


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("conditions", [[ALIVE], [ALIVE, OneOf("user_id", ("b",))]])
def test_every_page_is_that_of_all_cells(
    cloud: MappedCloud, sort: tuple[SortKey, ...], conditions: list[OneOf]
) -> None:
    marker = None
    while True:
        query = ServerQuery("p", 7, list(conditions), sort, marker)
        page = mapped_pages.read(cloud.cells, query)
        assert page is not None and page == listing._of_all_cells(cloud.cells, query)
        if not page.more:
            break
        marker = page.servers[-1].instance.uuid


def test_a_row_comes_with_its_tags_and_volumes(cloud: MappedCloud) -> None:
    """In one value each, of which no database keeps back a part."""
    server = with_everything(cloud, "with everything")
    try:
        check_everything(cloud, server)
    finally:
        cloud.hard_delete(server, 0)
