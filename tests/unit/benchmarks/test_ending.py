"""However a benchmark ends, nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# What it starts has a session of its own, and loses its parent.
PROGRAM = """
import subprocess, sys, tempfile
from benchmarks.scale.ending import CutShort, nothing_left

try:
    with nothing_left("test-ending-", float(sys.argv[1])) as folder:
        orphan = subprocess.run(
            ["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, start_new_session=True
        )
        print(folder, tempfile.mkdtemp(), orphan.stdout.strip(), flush=True)
        sys.stdin.read()
except CutShort as cut:
    print(cut, flush=True)
    sys.exit(cut.status)
"""


def start(seconds: float) -> tuple[subprocess.Popen[str], list[Path], int]:
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}/src"},
    )
    assert process.stdout is not None
    folder, inside, orphan = process.stdout.readline().split()
    assert Path(inside).parent == Path(folder)
    return process, [Path(folder), Path(inside)], int(orphan)


def is_left(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_process_and_no_folder(number: signal.Signals) -> None:
    process, folders, orphan = start(0)
    assert is_left(orphan)
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert said == f"{number.name}\n"
    assert process.returncode == 128 + number
    assert not is_left(orphan)
    assert not any(folder.exists() for folder in folders)


def test_a_benchmark_whose_time_is_over_leaves_no_process_and_no_folder() -> None:
    process, folders, orphan = start(2.0)
    assert process.stdout is not None
    assert process.stdout.read() == "time is up\n"
    assert process.wait(60) == 1
    assert not is_left(orphan)
    assert not any(folder.exists() for folder in folders)


def test_a_benchmark_that_ends_leaves_no_process_and_no_folder() -> None:
    process, folders, orphan = start(0)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not is_left(orphan)
    assert not any(folder.exists() for folder in folders)
