"""What a step may go by of what the step before it read: what is recent, and what neither has changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from causeway.hosts import liveness
from causeway.hosts.liveness import HostLife, Liveness
from causeway.model.sagas import StepPhase, StepRecord
from causeway.moves import cells_run, dead_hosts
from causeway.moves.move_run import Run
from causeway.store.cell import copies
from tests.unit.moves.remembered import MEMORY


class Clock:
    seconds = 1000.0

    def boot(self) -> float:
        return self.seconds


class Looked:
    """A run whose every read is counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads = 0
        self.clock = Clock()
        options: Any = SimpleNamespace(lease=1e6, journal_patience=1.0)
        environment: Any = SimpleNamespace(options=options, clock=self.clock)
        cells, conf = SimpleNamespace(database=lambda _cell: None), SimpleNamespace(service_down_time=60)
        services: Any = SimpleNamespace(cells=cells, conf=conf)
        move: Any = SimpleNamespace(data=MEMORY, instance_uuid="server", recipe="resize")
        self.run = Run(services, environment, SimpleNamespace(), move, asked_at=self.clock.seconds)  # type: ignore[arg-type]
        monkeypatch.setattr(copies, "on_host", self._read)
        self.begin()

    def _read(self, _database: Any, _uuid: str, _binary: str) -> Any:
        self.reads += 1
        instance = SimpleNamespace(task_state="resize_prep", host="host")
        return SimpleNamespace(instance=instance, block_devices=[], service=None, address="192.0.2.1")

    def begin(self, phase: StepPhase = StepPhase.DO, attempt: int = 1) -> None:
        self.run.step = StepRecord("Step", phase, 1, attempt=attempt)
        self.run.refresh()


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Looked:
    return Looked(monkeypatch)


def test_one_statement_gives_a_step_the_server_and_its_devices(looked: Looked) -> None:
    looked.run.source_instance(), looked.run.source_devices()
    assert (looked.reads, looked.run.addresses) == (1, {"host": "192.0.2.1"})


def test_a_step_reads_anew_unless_the_one_before_it_kept_the_records(looked: Looked) -> None:
    looked.run.source_instance()
    looked.begin()
    looked.run.source_instance()
    assert looked.reads == 2
    looked.run.keep_records("cell")
    looked.begin()
    looked.run.source_instance()
    assert looked.reads == 2
    looked.begin()
    looked.run.source_instance()
    assert looked.reads == 3


def test_what_a_step_wrote_is_in_what_it_kept(looked: Looked) -> None:
    looked.run.source_instance()
    looked.run.keep_records("cell", task_state="resize_migrating")
    looked.begin()
    assert (looked.run.source_instance().task_state, looked.reads) == ("resize_migrating", 1)


@pytest.mark.parametrize(
    ("phase", "attempt", "later"),
    [(StepPhase.DO, 2, 0.0), (StepPhase.UNDO, 1, 0.0), (StepPhase.DO, 1, cells_run.RECENT)],
    ids=["repeated", "undone", "later"],
)
def test_what_was_kept_is_read_anew(looked: Looked, phase: StepPhase, attempt: int, later: float) -> None:
    looked.run.source_instance()
    looked.run.keep_records("cell")
    looked.clock.seconds += later
    looked.begin(phase, attempt)
    looked.run.source_instance()
    assert looked.reads == 2


@pytest.mark.parametrize(
    ("attempt", "later", "looks"), [(1, 0.0, 1), (2, 0.0, 2), (1, cells_run.RECENT, 2)], ids=["", "repeated", "later"]
)
def test_a_hosts_life_is_looked_at_again_by_a_repeated_or_later_step(
    looked: Looked, monkeypatch: pytest.MonkeyPatch, attempt: int, later: float, looks: int
) -> None:
    seen: list[str] = []

    def of_host(_services: Any, _database: Any, host: str) -> HostLife:
        seen.append(host)
        return HostLife(host, Liveness.UP)

    monkeypatch.setattr(liveness, "of_host", of_host)
    dead_hosts.at_source(looked.run)
    looked.clock.seconds += later
    looked.begin(attempt=attempt)
    assert dead_hosts.recent_life(looked.run, "host", dead_hosts.at_source).is_up
    assert len(seen) == looks


def test_with_the_server_a_step_reads_whether_its_host_lives(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "of_host", lambda *_: pytest.fail("its host was looked at once more"))
    looked.run.source_instance()
    assert dead_hosts.recent_life(looked.run, "host", dead_hosts.at_source).is_down
