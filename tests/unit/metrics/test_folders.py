"""Services that were killed leave nothing in the folder for temporary files, once another one starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from causeway.metrics import folders

# Prints its folder when it has a worker, which lives until its input ends.
SERVICE = """
import os, sys
from causeway.metrics import folders
folder = folders.make()
if os.fork():
    print(folder, flush=True)
    os.wait()
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def service(temporary: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    command = [sys.executable, "-c", SERVICE]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        yield Path(process.stdout.readline().strip()), process


def test_those_of_a_killed_service_are_deleted_when_another_one_starts(temporary: Path) -> None:
    with service(temporary) as (folder, process):
        (folder / "counter_1.db").write_text("counted")
        os.killpg(process.pid, signal.SIGKILL)
    assert folder.exists()
    mine = folders.make()
    assert list(temporary.iterdir()) == [mine]


def test_those_of_a_service_whose_worker_still_runs_stay(temporary: Path) -> None:
    with service(temporary) as (folder, process):
        process.kill()
        process.wait(60)
        folders.make()
        assert folder.exists()


def test_what_only_has_the_name_stays(temporary: Path) -> None:
    other = temporary / "other"
    other.mkdir()
    (temporary / "causeway-metrics-link").symlink_to(other)
    (temporary / "causeway-metrics-file").write_text("a file")
    mine = folders.make()
    assert {path.name for path in temporary.iterdir()} == {
        "other", "causeway-metrics-link", "causeway-metrics-file", mine.name
    }  # fmt: skip
