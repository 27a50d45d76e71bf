"""The owner of a saga: a host *and* a life of its conductor.

A restarted conductor begins a new life. If it knows that its former life is over, it acquires the sagas of that life at once;
otherwise it waits for their leases to expire, like every other conductor. To show that it lives, each process locks a file on its
machine. The kernel releases the lock when the process ends, whatever ends it; and a lock can't be mistaken for that of another
process, as a process id can. Two conductors with the same `host` are two lives, and neither acquires the moves of the other.
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
    """A conductor from its start to its end. ``owner``: its name in the journal. ``former``: names of lives that are over."""

    def __init__(self, host: str, folder: Path | None = None) -> None:
        """``folder``: has the locks of the lives of this machine. None: former lives are unknown."""
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
                    "Without a lock file this conductor waits, after a restart, for the leases of its moves ([moves] lease): %s",
                    failure,
                )

    def _begin(self, folder: Path) -> None:
        durable.make_folder(folder)
        path = folder / f"{quote(self.owner, safe='')}.lock"
        # The file gets its final name when it is locked: an unlocked file with that name means a life that is over.
        self._lock = _locked(path.with_suffix(".new"))
        path.with_suffix(".new").rename(path)
        self._folder = folder
        self.namesakes()

    def namesakes(self) -> list[str]:
        """Returns the running conductors of this machine with the same host. Adds those that are over to `former`."""
        if self._folder is None:
            return []
        found = {_owner(path): path for path in self._folder.glob("*.lock")}
        others = [owner for owner in found if owner != self.owner and owner.rpartition("/")[0] == self.host]
        over = {owner for owner in others if _is_over(found[owner])}
        self.former |= over
        return sorted(set(others) - over)

    @property
    def mine(self) -> frozenset[str]:
        """The owners whose moves no other process works on: this life, and former lives that are over."""
        return self.former | {self.owner}

    # sagas that threads of this life work on

    @contextmanager
    def working_on(self, saga_id: str) -> Iterator[bool]:
        """Encloses the work of the thread on a saga. Yields False if another thread of this life works on it."""
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
        """Ends this life, so that the next one acquires its sagas at once.

        Does nothing while a thread works on a saga: then the lock is released when the process ends.
        """
        with self._condition:
            if self._lock is not None and not self._at_work:
                os.close(self._lock)
                self._lock = None


def _owner(path: Path) -> str:
    return unquote(path.stem)


def _locked(path: Path) -> int:
    """Makes the file if it does not exist, and locks it. Raises OSError if another process has the lock."""
    found = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(found)
        raise
    return found


def _is_over(path: Path) -> bool:
    """Returns whether no process has locked the file. If so, deletes the file."""
    try:
        found = _locked(path)
    except OSError:
        return False
    path.unlink(missing_ok=True)
    os.close(found)
    return True
