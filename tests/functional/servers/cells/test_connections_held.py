"""Nobody who has a connection waits for one that others may hold while they wait for his: so no two can wait for ever.

Connections to cells are few (`causeway.store.connections`), those to the API database, too. The order is: first a cell's, then
the API database's; never one of a second cell meanwhile, and never a cell's by whoever has one of the API database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from causeway.store.cells import Cells
from causeway.store.database import Database
from tests.functional.servers.moves_cloud import Cloud


class Hands:
    """What each thread holds when it asks for more."""

    def __init__(self) -> None:
        self._own = threading.local()
        self.seen = set[str]()
        self.pairs = set[tuple[str, str]]()
        self.asked_with = set[str]()

    @property
    def held(self) -> list[str]:
        found: list[str] = self._own.__dict__.setdefault("held", [])
        return found

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        self.seen.add(name)
        self.pairs |= {(other, name) for other in self.held}
        self.held.append(name)
        try:
            yield
        finally:
            self.held.remove(name)


def kind(database: Database) -> str:
    return "API" if database.name == "the API" else "cell"


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    hands = Hands()

    def held(take: Callable[[Database], AbstractContextManager[Any]]) -> Any:
        @contextmanager
        def connected(database: Database) -> Iterator[Any]:
            with hands.hold(kind(database)), take(database) as connection:
                yield connection

        return connected

    monkeypatch.setattr(Database, "read", held(Database.read))
    monkeypatch.setattr(Database, "write", held(Database.write))
    ask = Cells._ask

    def asking(cells: Cells, *arguments: Any) -> Any:
        hands.asked_with |= {*hands.held}
        return ask(cells, *arguments)

    monkeypatch.setattr(Cells, "_ask", asking)
    return hands


def test_a_cell_s_connection_is_never_waited_for_with_another_one_in_hand(cloud: Cloud, hands: Hands) -> None:
    stays, returns = cloud.boot(), cloud.boot()
    cloud.resized(stays)
    cloud.confirmed(stays)
    cloud.resized(returns)
    cloud.reverted(returns)
    cloud.member.compute.delete_server(stays.id)
    cloud.member.compute.wait_for_delete(stays)
    [*cloud.admin.compute.servers(all_projects=True, sort_key="display_name")]
    [*cloud.admin.compute.hypervisors()]
    assert {"cell", "API"} <= hands.seen
    assert hands.pairs <= {("cell", "API")}
    assert hands.asked_with == set()
