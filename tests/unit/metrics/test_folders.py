"""Services that were killed leave nothing in the folder for temporary files, once another one starts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from causeway.metrics import folders

# Prints the name of its folder once its workers run. All of them live until their input ends.
SERVICE = """
import os, sys
from causeway.metrics import folders
folder = folders.make()
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        sys.stdin.read()
        sys.exit()
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def killed_service(temporary: Path, workers: int = 0) -> Iterator[Path]:
    """The folder of a service that was killed, and whose workers live on."""
    command = [sys.executable, "-c", SERVICE, str(workers)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        process.kill()
        process.wait(60)
        yield folder


def test_the_folder_of_a_killed_service_is_deleted_when_another_one_starts(temporary: Path) -> None:
    with killed_service(temporary) as folder:
        (folder / "counter_1.db").write_text("counted")
        mine = folders.make()
        assert list(temporary.iterdir()) == [mine]


def test_a_folder_stays_as_long_as_a_worker_of_its_service_runs(temporary: Path) -> None:
    with killed_service(temporary, workers=1) as folder:
        folders.make()
        assert folder.exists()


def test_what_is_no_folder_stays_whatever_its_name(temporary: Path) -> None:
    other = temporary / "other"
    other.mkdir()
    (temporary / "causeway-metrics-link").symlink_to(other)
    (temporary / "causeway-metrics-file").write_text("a file")
    mine = folders.make()
    assert {path.name for path in temporary.iterdir()} == {
        "other", "causeway-metrics-link", "causeway-metrics-file", mine.name
    }  # fmt: skip
