"""Lives of conductors: which are known to be over, and which are not."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from causeway.sagas.clock import Clock
from causeway.sagas.lives import Life


def test_two_with_one_host_are_two(tmp_path: Path) -> None:
    one, other = Life("ctl", tmp_path), Life("ctl", tmp_path)
    assert one.owner != other.owner
    assert not one.former and not other.former
    assert (one.namesakes(), other.namesakes()) == ([other.owner], [one.owner])
    other.end()
    assert one.namesakes() == [] and one.former == {other.owner}
    assert {one.owner.rpartition("/")[0], other.owner.rpartition("/")[0]} == {"ctl"}


def test_a_life_that_was_ended_is_known_to_the_next_one_of_its_host(tmp_path: Path) -> None:
    first = Life("ctl/with a strange name", tmp_path)
    first.end()
    assert not Life("ctl", tmp_path).former
    assert Life("ctl/with a strange name", tmp_path).former == {first.owner}
    assert not Life("ctl/with a strange name", tmp_path).former


def test_a_life_is_not_over_while_a_thread_of_it_works_on_a_move(tmp_path: Path) -> None:
    first = Life("ctl", tmp_path)
    with first.working_on("move") as nobody_else:
        assert nobody_else and first.at_work() == {"move"}
        with first.working_on("move") as nobody_else:
            assert not nobody_else
        assert first.at_work() == {"move"}
        first.end()
        assert not Life("ctl", tmp_path).former
    assert first.at_work() == set()


def test_a_process_that_was_killed_is_known_to_be_dead(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib, time; from causeway.sagas.lives import Life;"
        f" life = Life('ctl', pathlib.Path({str(tmp_path)!r})); print(life.owner, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    owner = process.stdout.readline().strip()
    assert owner not in Life("ctl", tmp_path).former
    process.kill()
    process.communicate()
    assert owner in Life("ctl", tmp_path).former


def test_a_folder_that_cannot_be_used_means_waiting_for_leases(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    life = Life("ctl", tmp_path / "file")
    assert not life.former and life.owner
    life.end()


def test_the_clock_of_leases_counts_the_time_of_a_suspend(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def gettime(clock: int) -> float:
        asked.append(clock)
        return 1.0

    monkeypatch.setattr(time, "clock_gettime", gettime)
    assert Clock().boot() == 1.0
    assert asked == [time.CLOCK_BOOTTIME]
