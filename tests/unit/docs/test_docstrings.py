"""The examples in the docstrings of the code are run; what they do not make themselves they are given here."""

from __future__ import annotations

import doctest
import importlib
import threading
import uuid as uuids
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from oslo_config import cfg

from causeway.model.host import CELL0_UUID, CellMapping
from causeway.model.sagas import Saga
from causeway.rpc import Transports
from causeway.sagas.clock import Clock
from causeway.sagas.environment import Environment
from causeway.sagas.lives import Life
from causeway.store import schema
from causeway.store.api import cells as cell_records
from causeway.store.database import Database
from tests.unit.sagas.journal_in_memory import JournalInMemory

SOURCE = Path(__file__).parents[3] / "src"
MODULES = sorted(
    ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for file in (SOURCE / "causeway").rglob("*.py")
    if ">>> " in file.read_text()
)


@pytest.fixture
def sagas(tmp_path: Path) -> dict[str, Any]:
    clock = Clock()
    journal = JournalInMemory(clock)
    options: Any = SimpleNamespace(
        lease=30.0,
        journal_patience=1.0,
        patience=1.0,
        stuck_retry_interval=1.0,
        first_pause=0.1,
        attempts=2,
        workers=1,
        at_once=1,
    )

    def request(saga_id: str, *, recipe: str, data: dict[str, Any]) -> None:
        journal.insert(saga_id, recipe)
        journal.sagas[saga_id].data = data

    environment: Environment[Saga] = Environment(journal, Life("host", tmp_path), options, threading.Event(), clock)
    return {"environment": environment, "request": request}


@pytest.fixture
def database(tmp_path: Path) -> dict[str, Any]:
    return {"folder": tmp_path}


@pytest.fixture
def cells(tmp_path: Path) -> Iterator[dict[str, Any]]:
    api = Database(f"sqlite:///{tmp_path}/api.sqlite", "the API")
    schema.sync(api, "api")
    for name, uuid in (("cell0", CELL0_UUID), ("gen1", str(uuids.uuid4())), ("gen2", str(uuids.uuid4()))):
        url = f"sqlite:///{tmp_path}/{'missing/' if name == 'gen2' else ''}{name}.sqlite"
        cell_records.save_cell(api, CellMapping(uuid, name, "", url))
        if name != "gen2":
            cell = Database(url, name)
            schema.sync(cell, "cell")
            cell.close()
    yield {"api": api}
    api.close()


@pytest.fixture
def declare() -> Iterator[dict[str, Any]]:
    conf = cfg.ConfigOpts()
    conf([])
    transports = Transports(conf)
    yield {"transport": transports.get(f"causeway-memory://{uuids.uuid4()}")}
    transports.cleanup()


@pytest.mark.parametrize("name", MODULES)
def test_examples_do_what_they_say(name: str, request: pytest.FixtureRequest) -> None:
    """What an example is given is a fixture with the last part of its module's name."""
    given: dict[str, Any] = request.getfixturevalue(name.rpartition(".")[2])
    # Each line that does not do what it says is printed.
    found = doctest.testmod(importlib.import_module(name), extraglobs=given, optionflags=doctest.REPORT_NDIFF)
    assert found.attempted > 0
    assert found.failed == 0


def test_what_everybody_uses_has_an_example() -> None:
    assert set(MODULES) >= {
        "causeway.rpc.declare",
        "causeway.sagas",
        "causeway.store.cells",
        "causeway.store.database",
    }
