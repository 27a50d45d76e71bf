"""The owner of a saga: a host *and* a life of its conductor.

A restarted conductor has a new life. It acquires the sagas of its former life at once if that is known to be over; else it waits
for the leases to expire, like every other conductor. Each process holds a lock on a file of this machine as long as it lives. The
kernel releases the lock however the process ends, and a lock, unlike a process id, can't be mistaken for another process's. Two
conductors with the same `host` are two lives, and neither takes the other's moves.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import uuid as uuids
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

from causeway import durable

LOG = logging.getLogger(__name__)


class Life:
    """A conductor from its start to its end. ``owner`` names it in the journal; ``former`` names those known to be over."""

    def __init__(self, host: str, folder: Path | None = None) -> None:
        """``folder``: where the lives of this machine have their locks. None: former lives are unknown."""
        self.host = host
        self.owner = f"{host}/{uuids.uuid4().hex[:12]}"
        self.former: frozenset[str] = frozenset()
        self._condition = threading.Condition()
        self._at_work: set[str] = set()
        self._lock: int | None = None
        self._folder: Path | None = None
        if folder is not None:
            try:
                self._begin(folder)
            except OSError as failure:
                LOG.warning(
                    "%s: after a restart this conductor waits for the leases of its moves ([moves] lease)", failure
                )

    def _begin(self, folder: Path) -> None:
        durable.make_folder(folder)
        path = folder / f"{quote(self.owner, safe='')}.lock"
        # The file appears with its lock held: an unlocked file means a life that is over.
        self._lock = _locked(path.with_suffix(".new"))
        path.with_suffix(".new").rename(path)
        self._folder = folder
        self.namesakes()

    def namesakes(self) -> list[str]:
        """Running conductors of this machine with the same host. Those that are over become `former` ones."""
        if self._folder is None:
            return []
        found = {_owner(path): path for path in self._folder.glob("*.lock")}
        others = [owner for owner in found if owner != self.owner and owner.rpartition("/")[0] == self.host]
        over = {owner for owner in others if _is_over(found[owner])}
        self.former |= over
        return sorted(set(others) - over)

    @property
    def mine(self) -> frozenset[str]:
        """Owners whose moves no other process works on: this life, and former lives that are over."""
        return self.former | {self.owner}

    # sagas that threads of this life work on

    @contextmanager
    def working_on(self, saga_id: str) -> Iterator[bool]:
        """Notes that the thread works on a saga. Yields False if another thread of this life does."""
        with self._condition:
            free = saga_id not in self._at_work
            self._at_work.add(saga_id)
        try:
            yield free
        finally:
            if free:
                with self._condition:
                    self._at_work.discard(saga_id)

    def at_work(self) -> set[str]:
        with self._condition:
            return set(self._at_work)

    def end(self) -> None:
        """Lets the next life acquire this one's sagas at once, or when the process ends if a thread still works on one."""
        with self._condition:
            if self._lock is not None and not self._at_work:
                os.close(self._lock)
                self._lock = None


def _owner(path: Path) -> str:
    return unquote(path.stem)


def _locked(path: Path) -> int:
    """Locks a file, which is made if needed. Raises OSError if another process has the lock."""
    found = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(found)
        raise
    return found


def _is_over(path: Path) -> bool:
    """Whether no process holds the lock. If so, deletes the file."""
    try:
        found = _locked(path)
    except OSError:
        return False
    path.unlink(missing_ok=True)
    os.close(found)
    return True
