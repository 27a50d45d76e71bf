"""A cloud of records alone, for each test module, emptied for each test (see `listed_cloud`); and single new databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from causeway.store import mapped_pages
from causeway.store.database import Database
from tests.unit.new_databases import new_database
from tests.unit.store.listed_cloud import Cloud


@pytest.fixture(scope="module")
def module_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """All cells are asked for its pages: see `test_mapped_pages` for those that are made of mappings."""
    cloud = Cloud(tmp_path_factory.mktemp("cloud"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mapped_pages, "serves", lambda _query: False)
        yield cloud
    cloud.close()


@pytest.fixture
def cloud(module_cloud: Cloud) -> Cloud:
    module_cloud.empty()
    return module_cloud


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Database]:
    """A new API database."""
    with new_database(tmp_path, "api") as database:
        yield database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A new database of a cell. Modules that are about the API database have it under this name."""
    with new_database(tmp_path, "cell") as database:
        yield database
