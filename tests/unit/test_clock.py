"""Time that jumps instead of passing, for all who share a file."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from causeway import clock

HOUR = 3600.0


def test_without_a_file_time_is_real() -> None:
    real, over = clock.of(""), threading.Event()
    assert real.skipped() == 0.0
    assert abs(real.time() - time.time()) < 60.0
    assert not real.wait(over, 0.0)
    over.set()
    assert real.wait(over, HOUR)


def test_whoever_waits_skips_the_time(tmp_path: Path) -> None:
    jumping, never = clock.of(str(tmp_path / "new" / "clock")), threading.Event()
    began = jumping.monotonic(), jumping.time()
    assert not jumping.wait(never, 8 * HOUR)
    assert jumping.monotonic() - began[0] >= 8 * HOUR
    assert jumping.time() - began[1] >= 8 * HOUR
    assert 0.0 < jumping.skipped() <= 8 * HOUR


def test_what_has_happened_is_not_waited_for(tmp_path: Path) -> None:
    jumping, over = clock.of(str(tmp_path / "clock")), threading.Event()
    over.set()
    assert jumping.wait(over, HOUR)
    assert jumping.skipped() == 0.0


def test_a_fraction_of_it_may_be_waited_for(tmp_path: Path) -> None:
    watched, never = clock.of(str(tmp_path / "clock"), speed=HOUR * 20), threading.Event()
    began, real = watched.monotonic(), time.monotonic()
    assert not watched.wait(never, HOUR)
    assert watched.monotonic() - began >= HOUR
    assert time.monotonic() - real >= 0.05


def test_whoever_is_called_away_has_waited_until_then(tmp_path: Path) -> None:
    watched, over = clock.of(str(tmp_path / "clock"), speed=10.0), threading.Event()
    call = threading.Timer(0.05, over.set)
    began = watched.monotonic()
    call.start()
    assert watched.wait(over, 1000 * HOUR)
    # Ten times as much as a timer of 0.05 s took, which is no exact one.
    assert 0.4 <= watched.monotonic() - began < 100 * HOUR


def test_another_process_lives_through_it_too(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    here = clock.of(str(path))
    there = f"import threading; from causeway import clock; clock.of({str(path)!r}).wait(threading.Event(), {HOUR})"
    subprocess.run([sys.executable, "-c", there], check=True, timeout=60)
    assert HOUR - 60.0 < here.skipped() <= HOUR


def test_many_lose_nothing_of_each_other(tmp_path: Path) -> None:
    path, never = tmp_path / "clock", threading.Event()

    def skip() -> None:
        own = clock.of(str(path))
        for _ in range(50):
            before = own.monotonic()
            own.wait(never, HOUR)
            assert own.monotonic() - before >= HOUR

    threads = [threading.Thread(target=skip) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Those that overlap do not add up, but each has its own.
    assert 49 * HOUR < clock.of(str(path)).skipped() <= 200 * HOUR
