"""The state of devcloud: one SQLite file, one session, one lock.

Devcloud is one process, so all requests share one session under a lock, and rows that were read once stay in memory. A read by
primary key costs no SQL, and a write costs one short transaction. Data of images and volumes is in files.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import create_engine, event
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from causeway.devcloud.tables import Base


class Store:
    """The SQLite file and the lock around its one session."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._engine = create_engine(
            f"sqlite:///{path}",
            poolclass=StaticPool,
            connect_args={"check_same_thread": False},
            json_serializer=lambda value: msgspec.json.encode(value).decode(),
            json_deserializer=msgspec.json.decode,
        )
        event.listen(self._engine, "connect", _set_pragmas)
        Base.metadata.create_all(self._engine)
        self._session = Session(self._engine, expire_on_commit=False)
        self._depth = 0
        self._flushed = False
        self._kept: set[Base] = set()
        event.listen(self._session, "after_flush", self._note_flush)
        for arrival in ("loaded_as_persistent", "pending_to_persistent", "deleted_to_persistent"):
            event.listen(self._session, arrival, lambda _session, row: self._kept.add(row))
        for departure in ("persistent_to_deleted", "persistent_to_transient", "persistent_to_detached"):
            event.listen(self._session, departure, lambda _session, row: self._kept.discard(row))

    @property
    def session(self) -> Session:
        """The session. Use it only inside `transaction`."""
        return self._session

    def _note_flush(self, _session: Session, _context: object) -> None:
        self._flushed = True

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Gives the session to one thread at a time. Commits at the end, and rolls back if the block raises.

        A transaction inside another one of the same thread is part of it.
        """
        with self._lock:
            self._depth += 1
            try:
                yield self._session
            except BaseException:
                if self._depth == 1:
                    self._undo()
                raise
            else:
                if self._depth == 1:
                    self._commit()
            finally:
                self._depth -= 1

    def _commit(self) -> None:
        try:
            self._session.commit()
        except BaseException:
            self._session.rollback()
            raise
        finally:
            self._flushed = False

    def _undo(self) -> None:
        session = self._session
        # A rollback makes every row in memory stale, which a request that only read (404, 409, ...) does not need.
        if self._flushed or session.new or session.dirty or session.deleted:
            session.rollback()
        else:
            session.commit()
        self._flushed = False

    def close(self) -> None:
        with self._lock:
            self._session.close()
            self._engine.dispose()


def _set_pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=10000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
