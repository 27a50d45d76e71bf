"""What a process spends is counted, or it is said why not."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import recorded
from benchmarks.counting import typical
from benchmarks.instructions import Meter, Spent

WORK = 200_000


def work() -> None:
    sum(range(WORK))


@pytest.fixture
def meter() -> Iterator[Meter]:
    meter = Meter()
    yield meter
    meter.close()


def spent_on(meter: Meter, target: list[str] | None = None) -> Spent:
    before = meter.look()
    if target is None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    else:
        subprocess.run(target, check=True)
    return meter.look() - before


def test_instructions_are_counted_or_it_is_said_why_not(meter: Meter) -> None:
    counted = meter.look().instructions is not None
    assert counted == (not meter.refusal)
    assert counted or meter.refusal.startswith("perf_event_open: E")


def test_threads_count_and_children_do_not(meter: Meter) -> None:
    if meter.refusal:
        pytest.skip(meter.refusal)
    assert (spent_on(meter).instructions or 0) > WORK
    heavy = spent_on(meter, [sys.executable, "-c", f"sum(range({100 * WORK}))"]).instructions or 0
    assert heavy < 100 * WORK


def test_user_time_is_always_there(meter: Meter) -> None:
    before = meter.look()
    while (meter.look() - before).user_seconds == 0:
        work()


def test_the_typical_run_is_the_median() -> None:
    runs = [Spent(1.0, 10), Spent(9.0, 99), Spent(2.0, 20)]
    assert typical(runs) == Spent(2.0, 20)
    assert typical([*runs, Spent(3.0)]).instructions is None


def test_what_is_recorded_is_kept_by_kind_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "FILE", tmp_path / "recorded.json")
    assert recorded.load() == {}
    recorded.save({"show": 5})
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(recorded, "kind", lambda: "another")
        assert recorded.load() == {}
        recorded.save({"show": 7})
    assert recorded.load() == {"show": 5}
