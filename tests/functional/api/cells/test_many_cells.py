"""A cloud of many cells: what a process keeps of them (threads, connections) is bounded, whatever it is asked."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from causeway.model.host import CellMapping
from causeway.store.api import cells as cell_records
from causeway.store.cells import FEWEST_QUESTIONS, QUESTIONS, Cells
from causeway.store.connections import ConnectionBudget

CELLS, CONNECTIONS = 30, 16
# Each asks all cells.
PATHS = (
    "/servers/detail?all_tenants=1&sort_key=display_name",
    "/servers?name=any&all_tenants=1",
    "/os-hypervisors/detail",
    "/limits",
    "/os-availability-zone",
    "/os-simple-tenant-usage",
)


class Threads:
    """Those that ask cells: the most that there were."""

    def __init__(self) -> None:
        self.most = 0

    def look(self) -> None:
        self.most = max(self.most, sum(thread.name.startswith("cells_") for thread in threading.enumerate()))


@pytest.fixture
def many(cloud: Any, database_urls: Any) -> Iterator[Cells]:
    """The cloud's cells, when it has got many more."""
    for number in range(3, CELLS + 1):
        name = f"cell{number}"
        cloud.cell_uuids[name] = str(uuid.uuid4())
        mapping = CellMapping(cloud.cell_uuids[name], name, "none:///", database_urls(name))
        cell_records.save_cell(cloud.services.api, mapping)
    before, cloud.services.cells = cloud.services.cells, Cells(cloud.services.api, budget=ConnectionBudget(CONNECTIONS))
    before.close()
    yield cloud.services.cells
    cloud.services.cells.close()


def test_threads_and_connections_are_bounded(cloud: Any, many: Cells, api: Any) -> None:
    for number in range(1, CELLS + 1):
        cloud.host(f"host{number}", cell=f"cell{number}")
    admin, threads = api.by("admin:admin"), Threads()

    def ask(turn: int) -> tuple[str, int]:
        path = PATHS[turn % len(PATHS)]
        answer = admin.call("GET", path)
        threads.look()
        assert many.budget.open <= CONNECTIONS
        return path, answer.status

    with ThreadPoolExecutor(6) as users:
        answers = Counter(users.map(ask, range(2 * len(PATHS))))
    assert answers == {(path, 200): 2 for path in PATHS}
    assert len(admin.call("GET", "/os-hypervisors").json["hypervisors"]) == CELLS
    assert 0 < threads.most <= max(QUESTIONS, FEWEST_QUESTIONS * (CELLS + 1))


def test_what_was_kept_of_a_deleted_cell_goes(cloud: Any, many: Cells) -> None:
    asked = many.ask_all(lambda _cell, database: database.ping())
    assert len(asked.by_cell) == CELLS + 1
    for cell in many.mappings()[3:]:
        cell_records.delete_empty_cell(cloud.services.api, cell)
    many.refresh()
    assert len(many.ask_all(lambda _cell, database: database.ping()).by_cell) == 3
    assert many.budget.open == 3
