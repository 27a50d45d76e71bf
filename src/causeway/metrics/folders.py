"""Folders into which the processes of one service count, as long as one of them lives."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp

_PREFIX = "causeway-metrics-"


def make() -> Path:
    """Makes a folder that is locked until this process and all that it forks have ended. Deletes those of killed services.

    Raises OSError if none can be made or locked.
    """
    for found in Path(gettempdir()).glob(f"{_PREFIX}*"):
        # It is in use, is no folder, or has been deleted meanwhile.
        with suppress(OSError):
            _delete_if_abandoned(found)
    while True:
        folder = Path(mkdtemp(prefix=_PREFIX))
        # Another service that starts may look at it, and delete it, before it is locked.
        with suppress(BlockingIOError, FileNotFoundError):
            _lock(folder)
            if folder.exists():
                return folder


def _delete_if_abandoned(folder: Path) -> None:
    if folder.lstat().st_uid == os.getuid():
        descriptor = _lock(folder)
        rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _lock(folder: Path) -> int:
    """Returns a descriptor that locks the folder until it is closed. Raises BlockingIOError if another process has the lock."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
