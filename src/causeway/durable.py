"""Writes files that survive a power cut, and are whole after it.

What a program writes stays in the system's memory until it is synced. So do the names in a folder when a file is made, renamed
or deleted. So `write` writes a record under another name, syncs it, renames it, and syncs its folder. `settle` does the same
with a file that others made (a disk that was received or converted): it is synced before it gets its final name. When a function
of this module returns, its effect survives a power cut. That holds also if it found nothing to do: an earlier process may
have done it, and have been killed before it synced.

`replace` alone syncs nothing. It is for what a power cut ends anyway; `this_boot` shows whether there was one.
"""

from __future__ import annotations

import functools
import logging
import os
import shutil
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import msgspec

LOG = logging.getLogger(__name__)
T = TypeVar("T")

_NEW, _TORN = ".new", ".torn"
# Folders that this process has made, or in which it has made others: their own names are synced.
_KNOWN: set[Path] = set()
_MOST_KNOWN = 256


class SyncCounter:
    """Counts syncs, for benchmarks and tests."""

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
    """Replaces a file as a whole: readers see the old content or the new one, even after a crash.

    ``mode``: its permissions; None: those of the old file, or the default of new files.
    """
    _replace(path, content, mode, is_synced=True)
    sync(path.parent)


def replace(path: Path, content: bytes | str, *, mode: int | None = None, is_synced: bool = False) -> None:
    """The same as `write` for other processes and after a crash of this one; after a power cut the file may be old or empty.

    ``is_synced``: not empty. The caller syncs the folder with something else that it writes there.
    """
    _replace(path, content, mode, is_synced=is_synced)


@functools.cache
def this_boot() -> str:
    """Names the time since the machine was started: what was not synced holds no longer.

    Source: random(4), /proc/sys/kernel/random/boot_id. Where that is not readable, it names this process.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return uuid4().hex


def _replace(path: Path, content: bytes | str, mode: int | None, *, is_synced: bool) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}{_NEW}")
    # An earlier process with the same process id may have left it, with other permissions.
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is None:
                with suppress(FileNotFoundError):
                    os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
            file.write(content.encode() if isinstance(content, str) else content)
            if is_synced:
                file.flush()
                _sync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def create(path: Path, content: bytes | str) -> bool:
    """Makes a file that does not exist, as a whole. False: it exists already. Of several who make it at once, one succeeds."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}{_NEW}")
    write(temporary, content)
    return _name(temporary, path)


def settle_unless_there(source: Path, target: Path) -> bool:
    """Gives a complete file its final name, or deletes it: False, another one has the name. Of several at once, one succeeds."""
    sync(source)
    return _name(source, target)


def _name(source: Path, target: Path) -> bool:
    try:
        # A link, also over NFS, is made only if the name is free.
        os.link(source, target)
    except FileExistsError:
        return False
    finally:
        source.unlink()
        # Whoever made it may have died before it synced.
        sync(target.parent)
    return True


class Torn(Exception):
    """A file can't be decoded, after a power cut, a full disk or somebody's edit. It was renamed to ``kept``."""

    def __init__(self, path: Path, kept: Path) -> None:
        super().__init__(f"{path} is torn; what it held is kept as {kept.name}")
        self.path = path
        self.kept = kept


def read(path: Path, decode: Callable[[bytes], T]) -> T | None:
    """Returns the decoded content of a file; None if the file does not exist.

    Raises `Torn` if ``decode`` fails. Then the file is renamed, so that people can look at it, and its new name is logged.
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
    """Renames a torn file, and returns its new path. Files that were put aside before keep their names."""
    number, kept = 1, path.with_name(path.name + _TORN)
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}{_TORN}.{number}")
    rename(path, kept)
    return kept


def settle(source: Path, target: Path) -> None:
    """Gives a complete file its final name: syncs its content first, then renames it."""
    sync(source)
    rename(source, target)


def rename(source: Path, target: Path) -> None:
    """Renames a file or a folder whose content is synced, or replaces a file by it."""
    source.replace(target)
    _discard_known(source)
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
    """Makes a folder and the folders above it, unless they exist."""
    if path in _KNOWN and path.is_dir():
        return
    if not path.is_dir():
        if path.parent not in _KNOWN or not path.parent.is_dir():
            make_folder(path.parent)
        path.mkdir(mode=mode, exist_ok=True)
    elif not os.access(path.parent, os.R_OK | os.W_OK):
        # Its parent belongs to another user, who made the folder: nothing to sync.
        return
    sync(path.parent)
    _remember(path)


def _remember(folder: Path) -> None:
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN.add(folder)


def _discard_known(folder: Path) -> None:
    # Of a copy: other threads add to it.
    for known in tuple(_KNOWN):
        if known.is_relative_to(folder):
            _KNOWN.discard(known)


def sync_tree(folder: Path, *, but: Collection[str] = ()) -> None:
    """Syncs the names and contents of everything below a folder; of files named ``but``, the names only."""
    for path, _folders, files in os.walk(folder):
        for name in files:
            if name in but:
                continue
            file = Path(path) / name
            if file.is_file() and not file.is_symlink():
                sync(file)
        sync(Path(path))


def delete(path: Path) -> None:
    """Deletes a file, if it exists."""
    path.unlink(missing_ok=True)
    _sync_if_there(path.parent)


def delete_tree(folder: Path) -> None:
    """Deletes a folder with everything in it, if it exists. Raises OSError if something in it can't be deleted."""
    _discard_known(folder)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    _sync_if_there(folder.parent)


def discard_unfinished(folder: Path) -> None:
    """Deletes the temporary files that an earlier process left in a folder because it died during `write`.

    Syncs the folder too: the process may have renamed a file and died before it synced.
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
