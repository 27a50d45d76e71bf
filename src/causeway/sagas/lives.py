"""Who owns a saga: a host *and* a life of its conductor.

A conductor that was started anew has another life: it acquires the sagas of its former one at once if that is known to be
over, else when the leases are over, as anybody may. It is known by a lock on a file of this machine that a process holds as
long as it lives: the kernel releases it however the process ends, and no number of a process can be mistaken for another's.
Two conductors with the same `host` are two lives, and neither takes the other's moves.
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
        """``folder``: where lives of this machine have their locks; None: nothing is known of former ones."""
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
        # The file appears with its lock held: an unlocked one would be that of a life that is over.
        self._lock = _locked(path.with_suffix(".new"))
        path.with_suffix(".new").rename(path)
        self._folder = folder
        self.namesakes()

    def namesakes(self) -> list[str]:
        """Other conductors that run on this machine under the same host; those that are over become `former` ones."""
        if self._folder is None:
            return []
        found = {_owner(path): path for path in self._folder.glob("*.lock")}
        others = [owner for owner in found if owner != self.owner and owner.rpartition("/")[0] == self.host]
        over = {owner for owner in others if _is_over(found[owner])}
        self.former |= over
        return sorted(set(others) - over)

    @property
    def mine(self) -> frozenset[str]:
        """Owners whose moves nobody else works on: this life, and those before it that are over."""
        return self.former | {self.owner}

    # sagas that threads of this life work on

    @contextmanager
    def working_on(self, saga_id: str) -> Iterator[bool]:
        """Notes that the thread works on a saga; False if another one of this life does."""
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
        """Lets the next life acquire this one's sagas at once; if a thread still works on one, when the process ends."""
        with self._condition:
            if self._lock is not None and not self._at_work:
                os.close(self._lock)
                self._lock = None


def _owner(path: Path) -> str:
    return unquote(path.stem)


def _locked(path: Path) -> int:
    """Takes the lock of a file, made if it is not there; raises OSError if another process has it."""
    found = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(found)
        raise
    return found


def _is_over(path: Path) -> bool:
    """Whether nobody holds the lock; then the file goes."""
    try:
        found = _locked(path)
    except OSError:
        return False
    path.unlink(missing_ok=True)
    os.close(found)
    return True
