"""Whether a move is still a conductor's own, after its machine was suspended or the journal answered late."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests import lease_checks

from causeway import errors
from causeway.context import RequestContext
from causeway.model.moves import MoveState
from causeway.moves import run as runs
from causeway.moves.run import Run
from causeway.store import schema
from causeway.store.api import journal
from causeway.store.database import Database

LEASE = 30.0
MEMORY: dict[str, Any] = {
    "migration_type": "resize",
    "source_cell": "c",
    "source_host": "h",
    "source_node": "n",
    "source_hypervisor": None,
    "source_zone": None,
    "old_flavor": {"flavorid": "1", "name": "f", "vcpus": 1, "memory_mb": 1, "root_gb": 1},
    "new_flavor": {"flavorid": "1", "name": "f", "vcpus": 1, "memory_mb": 1, "root_gb": 1},
    "old_vm_state": "active",
}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/api.sqlite", "api")
    schema.sync(database, "api")
    yield database
    database.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(runs, "boot_clock", lambda: now[0])
    return now


def acquired(api: Database, owner: str, asked_at: float, move_id: str | None = None) -> Run:
    move = journal.acquire(api, move_id or lease_checks.new_move(api).id, owner, LEASE)
    assert move is not None
    move.data, move.state = MEMORY, MoveState.RUNNING
    options = SimpleNamespace(lease=LEASE, journal_patience=0.0)
    services: Any = SimpleNamespace(
        api=api, conf=SimpleNamespace(moves=options), life=SimpleNamespace(owner=owner), stopping=threading.Event()
    )
    return Run(services, RequestContext(overwrite=False), move, asked_at=asked_at)


def test_after_a_suspend_the_journal_is_asked(api: Database, clock: list[float]) -> None:
    run = acquired(api, lease_checks.ONE, clock[0])
    run.save()
    lease_checks.end_lease(api, run.move)
    acquired(api, lease_checks.OTHER, clock[0], run.move.id).save()
    # Its lease was just renewed, as far as it knows.
    run.hold()
    clock[0] += LEASE
    with pytest.raises(errors.TakenOver):
        run.hold()


def test_a_lease_counts_from_when_it_was_asked_for(
    api: Database, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer took as long as the lease: who believes in it would act while another has the move."""
    run = acquired(api, lease_checks.ONE, clock[0])
    record = journal.record

    def slow(*arguments: Any, **named: Any) -> None:
        record(*arguments, **named)
        clock[0] += LEASE

    with monkeypatch.context() as patched:
        patched.setattr(journal, "record", slow)
        run.save()
    lease_checks.end_lease(api, run.move)
    acquired(api, lease_checks.OTHER, clock[0], run.move.id)
    with pytest.raises(errors.TakenOver):
        run.hold()
