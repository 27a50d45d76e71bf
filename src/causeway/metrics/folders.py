"""Folders into which the processes of one service count, as long as one of them lives."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp

_PREFIX = "causeway-metrics-"


def make() -> Path:
    """Makes a folder that is locked until this process and all that it forks have ended. Deletes those of killed services."""
    for found in Path(gettempdir()).glob(f"{_PREFIX}*"):
        _delete_if_abandoned(found)
    while True:
        folder = Path(mkdtemp(prefix=_PREFIX))
        # Another service that starts may have looked at it before it was locked.
        if _lock(folder) is not None and folder.exists():
            return folder


def _delete_if_abandoned(folder: Path) -> None:
    descriptor = _lock(folder)
    if descriptor is not None:
        rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _lock(folder: Path) -> int | None:
    """Returns a descriptor that locks the folder until it is closed; None if another process has it, or it is not this user's."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_uid == os.getuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    except BlockingIOError:
        pass
    os.close(descriptor)
    return None
