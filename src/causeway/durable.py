"""Files that are still there, and whole, after a power cut.

What a program has written is in the system's memory until it is synced, and so is the name that a file was made, renamed or
deleted under, which is its folder's content. So a record is written under another name, synced, renamed, and its folder synced
(`write`); what was made by others (a disk that was received or converted) is synced before it gets the name that somebody
counts on (`settle`). When a function of this module returns, its effect outlives the machine's power: also when it finds that
nothing is left to do, because a process that did it may have been killed before it synced.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

LOG = logging.getLogger(__name__)
T = TypeVar("T")

_NEW, _TORN = ".new", ".torn"


class SyncCounter:
    """How often something was synced; benchmarks and tests read it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def add(self) -> None:
        with self._lock:
            self._count += 1

    @property
    def total(self) -> int:
        with self._lock:
            return self._count


syncs = SyncCounter()


def write(path: Path, content: bytes | str, *, mode: int | None = None) -> None:
    """Replaces a file as a whole: whoever reads it, also after a crash, sees the old content or the new one.

    ``mode``: its permissions; None: those it had, or those of any new file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}{_NEW}")
    # What an earlier process of this number left behind must not lend its permissions.
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is None:
                with suppress(FileNotFoundError):
                    os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            _sync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


class Torn(Exception):
    """A file does not hold what was written to it: a power cut, a full disk, somebody's editor. It is at ``kept`` now."""

    def __init__(self, path: Path, kept: Path) -> None:
        super().__init__(f"{path} is torn; what it held is kept as {kept.name}")
        self.path = path
        self.kept = kept


def read(path: Path, decode: Callable[[bytes], T]) -> T | None:
    """What a file holds; None if there is none.

    Raises `Torn` if ``decode`` can make nothing of it. It is put aside for people to look at, and its name is logged.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return decode(content)
    except (ValueError, TypeError, AttributeError, KeyError, msgspec.MsgspecError) as failure:
        kept = put_aside(path)
        LOG.error("%s is torn (%d bytes: %s); it is kept as %s", path, len(content), failure, kept.name)
        raise Torn(path, kept) from failure


def put_aside(path: Path) -> Path:
    """Renames a torn file; where to is returned. One that was put aside before keeps its place."""
    number, kept = 1, path.with_name(path.name + _TORN)
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}{_TORN}.{number}")
    rename(path, kept)
    return kept


def settle(source: Path, target: Path) -> None:
    """Gives a file that is complete its name: its content first, then the name."""
    sync(source)
    rename(source, target)


def rename(source: Path, target: Path) -> None:
    """Renames a file or a folder whose content is synced, or replaces a file by it."""
    source.replace(target)
    sync(target.parent)
    if source.parent != target.parent:
        sync(source.parent)


def sync(path: Path) -> None:
    """Syncs a file's content, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path, *, mode: int = 0o777) -> None:
    """Makes a folder, and those above it; one that is there is fine."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=mode, exist_ok=True)
    elif not os.access(path.parent, os.R_OK | os.W_OK):
        # Others made it.
        return
    sync(path.parent)


def sync_tree(folder: Path) -> None:
    """Syncs all that is in a folder and below it, names and contents."""
    for path, _folders, files in os.walk(folder):
        for name in files:
            file = Path(path) / name
            if file.is_file() and not file.is_symlink():
                sync(file)
        sync(Path(path))


def delete(path: Path) -> None:
    """Deletes a file; none there is a success."""
    path.unlink(missing_ok=True)
    _sync_if_there(path.parent)


def delete_tree(folder: Path) -> None:
    """Deletes a folder and what is in it; none there is a success. Raises OSError if something of it can't be deleted."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    _sync_if_there(folder.parent)


def discard_unfinished(folder: Path) -> None:
    """Deletes what writes of an earlier process, which did not come to their end, left in a folder.

    Those that it brought to their end and did not sync any more are synced: what is read there now is counted on.
    """
    for path in folder.glob(f".*{_NEW}"):
        path.unlink(missing_ok=True)
    sync(folder)


def _sync_if_there(folder: Path) -> None:
    with suppress(FileNotFoundError):
        sync(folder)


def _sync(descriptor: int) -> None:
    os.fsync(descriptor)
    syncs.add()
