"""A query that fails or is slow is the error of its request; the cell, which answers, stays up for everybody."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.model.host import CellMapping
from causeway.store import cells as cells_module
from causeway.store.conditions import Deleted
from causeway.store.database import Database
from causeway.store.listing import ServerQuery, list_servers
from tests.unit.store.listed_cloud import Cloud


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    made = Cloud(tmp_path)
    yield made
    made.close()


def _fail(_cell: CellMapping, database: Database) -> None:
    with database.read() as connection:
        connection.exec_driver_sql("SELECT 1 FROM missing")


class _Broken(Deleted):
    def clause(self) -> sa.ColumnElement[bool]:
        return sa.literal_column("nothing") == 1


def test_a_failing_query_is_its_requests_error(cloud: Cloud) -> None:
    with pytest.raises(errors.QueryFailed) as refused:
        cloud.cells.ask_all(_fail)
    assert "The database of cell" in refused.value.message
    assert "no such table" in refused.value.details
    assert not cloud.cells.any_down


def test_a_slowly_failing_query_leaves_its_cell_up(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_module, "SLOW_FAILURE", -1.0)
    with pytest.raises(errors.QueryFailed):
        cloud.cells.ask_all(_fail)
    assert not cloud.cells.any_down
    assert cloud.cells.ask_all(lambda _cell, database: database.ping()).down == []


def test_a_query_that_takes_too_long_leaves_its_cell_up(cloud: Cloud) -> None:
    over = threading.Event()
    cloud.cells.timeout = 0.05
    try:
        with pytest.raises(errors.QueryFailed) as refused:
            cloud.cells.ask_all(lambda _cell, _database: over.wait(60))
        assert "more than" in refused.value.details
        assert not cloud.cells.any_down
    finally:
        over.set()


def test_work_that_continues_with_other_cells_marks_none_as_down(cloud: Cloud) -> None:
    found = cloud.cells.ask_all(_fail, without_failed=True)
    assert [cell.name for cell in found.down] == ["cell1", "cell2"]
    assert not cloud.cells.any_down


def test_a_list_is_never_empty_because_its_query_failed(cloud: Cloud) -> None:
    with pytest.raises(errors.QueryFailed):
        list_servers(cloud.cells, ServerQuery("p", 10, conditions=[_Broken(False)]))


def test_a_cell_that_can_not_be_reached_is_down(cloud: Cloud, tmp_path: Path) -> None:
    gone = Database(f"sqlite:///{tmp_path}/no-such-folder/cell.sqlite", "cell1")
    cloud.cells._databases.clear()
    cell = cloud.cells.mapping(cloud.uuids[0])
    cloud.cells._databases[cell.uuid, cell.database_connection] = gone
    found = cloud.cells.ask_all(lambda _cell, database: database.ping())
    assert [each.name for each in found.down] == ["cell1"]
    assert not cloud.cells.answers(cell.uuid)
