"""Connections to the databases of all cells together are bounded, whatever the number of cells."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.store.connections import IDLE_SECONDS, BudgetPool, ConnectionBudget
from causeway.store.database import Database

NUMBER = 20


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Opened:
    """What is open, as the databases' drivers see it; by file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now, self.most, self.ever = Counter[str](), 0, 0

    def watch(self, database: Database) -> None:
        def connected(_connection: object, _record: object) -> None:
            with self._lock:
                self.now[database.name] += 1
                self.ever += 1
                self.most = max(self.most, self.now.total())

        def closed(_connection: object, _record: object) -> None:
            with self._lock:
                self.now[database.name] -= 1

        sa.event.listen(database.engine, "connect", connected)
        sa.event.listen(database.engine, "close", closed)


class Bench:
    """Many databases with one budget."""

    def __init__(self, directory: Path, most: int) -> None:
        self.time, self.opened = Time(), Opened()
        self.budget = ConnectionBudget(most, clock=self.time)
        self.databases = [
            Database(f"sqlite:///{directory}/{number}.sqlite", f"cell{number}", budget=self.budget, synchronous=False)
            for number in range(NUMBER)
        ]
        for database in self.databases:
            self.opened.watch(database)
            pool = database.engine.pool
            assert isinstance(pool, BudgetPool)
            pool._timeout = 0.05

    def close(self) -> None:
        for database in self.databases:
            database.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, most=6)
    yield made
    made.close()
    assert made.opened.now.total() == 0 == made.budget.open


def test_many_databases_take_turns_with_few_connections(bench: Bench) -> None:
    for database in bench.databases:
        database.engine.pool._timeout = 30.0  # type: ignore[attr-defined]
    answered = Counter[str]()
    lock = threading.Lock()

    def ask(number: int) -> None:
        database = bench.databases[number % NUMBER]
        with database.read() as connection:
            assert connection.execute(sa.select(1)).scalar_one() == 1
            assert bench.budget.open <= 6
        with lock:
            answered[database.name] += 1

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(ask, range(NUMBER * 10)))
    assert set(answered.values()) == {10}
    assert bench.opened.most <= 6


def test_no_more_are_open_than_the_budget_allows(bench: Bench) -> None:
    for database in bench.databases * 2:
        database.ping()
    assert bench.opened.most == 6
    assert bench.opened.now.total() == 6 == bench.budget.open


def test_a_connection_that_was_just_used_is_used_again(bench: Bench) -> None:
    for _ in range(5):
        bench.databases[0].ping()
    assert bench.opened.ever == 1


def test_who_needs_one_takes_that_which_was_idle_for_longest(bench: Bench) -> None:
    for database in bench.databases[:6]:
        database.ping()
    bench.databases[0].ping()
    bench.databases[6].ping()
    assert {name for name, number in bench.opened.now.items() if number} == {
        "cell0",
        *(f"cell{n}" for n in range(2, 7)),
    }


def test_one_database_gets_half_of_them_at_most(bench: Bench) -> None:
    """So one that does not answer any more leaves the others theirs."""
    slow = bench.databases[0]
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(slow.read())
        with pytest.raises(errors.DatabaseFailed) as failed:
            slow.ping()
        for database in bench.databases[1:]:
            database.ping()
    assert "cell0" in failed.value.message
    assert "may have 6" in failed.value.details
    assert "3 of them to one" in failed.value.details
    assert "cell_connections" in failed.value.details
    slow.ping()


def test_all_in_use_is_a_failure_that_says_so_and_passes(bench: Bench) -> None:
    with ExitStack() as held:
        for database in bench.databases[:6]:
            held.enter_context(database.read())
        with pytest.raises(errors.DatabaseFailed, match="try again later"):
            bench.databases[6].ping()
    bench.databases[6].ping()


def test_who_waits_gets_the_connection_that_is_returned(bench: Bench) -> None:
    waiting = bench.databases[6]
    waiting.engine.pool._timeout = 30.0  # type: ignore[attr-defined]
    with ExitStack() as held, ThreadPoolExecutor(1) as pool:
        for database in bench.databases[:6]:
            held.enter_context(database.read())
        answer = pool.submit(waiting.ping)
        held.pop_all().close()
        answer.result(30)
    assert bench.opened.most == 6


def test_what_nobody_uses_is_closed(bench: Bench) -> None:
    for database in bench.databases[:4]:
        database.ping()
    bench.time.now += IDLE_SECONDS / 2
    bench.databases[0].ping()
    bench.time.now += IDLE_SECONDS / 2 + 1
    bench.budget.close_unused()
    assert +bench.opened.now == {"cell0": 1}
    assert bench.budget.open == 1


def test_a_database_that_can_not_be_reached_uses_up_nothing(tmp_path: Path) -> None:
    budget = ConnectionBudget(2)
    gone = Database(f"sqlite:///{tmp_path}/not-there/one.sqlite", "gone", budget=budget)
    for _ in range(5):
        with pytest.raises(errors.DatabaseFailed):
            gone.ping()
    assert budget.open == 0
    there = Database(f"sqlite:///{tmp_path}/one.sqlite", "there", budget=budget)
    there.ping()
    there.close()


def test_a_closed_database_closes_connections_that_are_returned_later(bench: Bench) -> None:
    database = bench.databases[0]
    with database.read() as connection:
        database.close()
        assert connection.execute(sa.select(1)).scalar_one() == 1
        assert bench.opened.now["cell0"] == 1
    assert bench.opened.now["cell0"] == 0 == bench.budget.open
    # Whoever still has it can use it.
    database.ping()
    assert bench.opened.now["cell0"] == 1 == bench.budget.open


def test_a_connection_that_broke_is_made_anew_within_the_budget(bench: Bench) -> None:
    database = bench.databases[0]
    with database.read() as connection:
        connection.invalidate()
        assert connection.execute(sa.select(1)).scalar_one() == 1
    database.ping()
    assert bench.budget.open == 1


def test_no_file_is_open_that_is_not_counted(tmp_path: Path) -> None:
    """What SQLAlchemy asks of a pool is what `BudgetPool` has: nothing is open that the system does not show."""
    budget = ConnectionBudget(4)
    databases = [
        Database(f"sqlite:///{tmp_path}/{n}.sqlite", str(n), budget=budget, synchronous=False) for n in range(10)
    ]
    for database in databases:
        database.ping()
    files = {str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()}
    assert sum(f"{tmp_path}/{n}.sqlite" in files for n in range(10)) == 4 == budget.open
    for database in databases:
        database.close()
