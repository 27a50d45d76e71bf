"""What a copy got is on its way to the medium before the flush that waits for it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from causeway.virt.libvirt.storage import early_flush
from causeway.virt.libvirt.storage.early_flush import EVERY, EarlyFlush

MIB = 1 << 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    path.write_bytes(bytes(MIB))
    return path


def test_the_system_is_asked_for_each_few_pieces(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, is_asked = [], threading.Semaphore(0)

    def begin(descriptor: int) -> None:
        asked.append(os.fstat(descriptor).st_ino)
        is_asked.release()

    monkeypatch.setattr(early_flush, "_begin", begin)
    with EarlyFlush(file) as early:
        for _ in range(3):
            for _ in range(EVERY // MIB):
                early.wrote(MIB)
            assert is_asked.acquire(timeout=60)
            assert early._begun is not None
            early._begun.result(60)
        early.wrote(MIB)
    assert asked == [file.stat().st_ino] * 3


def test_nobody_waits_for_a_slow_disk(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, resumes = [], threading.Event()

    def begin(descriptor: int) -> None:
        asked.append(descriptor)
        resumes.wait(60)

    monkeypatch.setattr(early_flush, "_begin", begin)
    with EarlyFlush(file) as early:
        for _ in range(10 * EVERY // MIB):
            early.wrote(MIB)
        resumes.set()
    assert len(asked) == 1


def test_the_system_knows_the_call(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        assert early_flush._sync_file_range is not None
        early_flush._begin(descriptor)
    finally:
        os.close(descriptor)
