"""An engine and its transactions."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy import event

from causeway import errors, metrics
from causeway.store import database_urls, overdue, state_changes
from causeway.store.connections import BudgetPool, ConnectionBudget
from causeway.store.patterns import sqlite_regexp
from causeway.store.state_changes import StateChange

LOG = logging.getLogger(__name__)

T = TypeVar("T")

# The most values of one condition in a statement.
_MOST_VALUES = 500
# Seconds for which a writer waits for another one (SQLite) or for a connection of the pool.
LOCK_TIMEOUT = 30
# Seconds within which a server must accept a connection, and within which it must answer a statement.
CONNECT_TIMEOUT, ANSWER_TIMEOUT = 10, 60
# A server that has not answered after so many times its own limit for a statement is frozen.
OVERDUE = 1.25
# Seconds after which an unused connection is pinged before its next use. Pinging each time, as SQLAlchemy can, doubles the cost
# of a statement; a server does not restart in less time than this.
PING_AFTER = 1.0
# The statement that begins a transaction. Connections are in autocommit mode, so that a read costs only its statement. A deferred
# transaction of SQLite that begins to write fails at once if another writer was quicker.
_BEGIN = {"sqlite": "BEGIN IMMEDIATE", "mysql": "BEGIN", "mariadb": "BEGIN"}
# An error of the driver; no connection was free in time; the connection broke before this statement.
_FAILURES = (sa.exc.DBAPIError, sa.exc.TimeoutError, sa.exc.PendingRollbackError)
_RETURNED, _IN_USE = "returned", "in use"
# What the API database is called; all others are of cells.
API = "the API"


def utcnow() -> datetime:
    """Now, in UTC without a zone, as every time in the databases is."""
    return datetime.now(UTC).replace(tzinfo=None)


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in portions that one statement takes."""
    for first in range(0, len(values), _MOST_VALUES):
        yield values[first : first + _MOST_VALUES]


class StatementCounter:
    """How many SQL statements were sent, by database name. Benchmarks and regression tests read it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.log: list[tuple[str, str]] | None = None

    def add(self, name: str, statement: str) -> None:
        with self._lock:
            self._counts[name] += 1
            if self.log is not None:
                self.log.append((name, statement))

    def snapshot(self) -> Counter[str]:
        with self._lock:
            return Counter(self._counts)


statements = StatementCounter()


class Database:
    """One database. ``name`` is for logs, metrics and error messages only.

    >>> database = Database(f"sqlite:///{folder}/notes.sqlite", "the notes")
    >>> with database.write() as connection:   # one transaction
    ...     _ = connection.exec_driver_sql("CREATE TABLE notes (text TEXT)")
    ...     _ = connection.exec_driver_sql("INSERT INTO notes VALUES ('kept')")
    >>> with database.write() as connection:
    ...     _ = connection.exec_driver_sql("INSERT INTO notes VALUES ('rolled back')")
    ...     raise ValueError("the writes of a block that raises are rolled back")
    Traceback (most recent call last):
    ValueError: the writes of a block that raises are rolled back
    >>> with database.read() as connection:
    ...     connection.exec_driver_sql("SELECT text FROM notes").scalars().all()
    ['kept']

    A database that fails is a DatabaseFailed (503), whose details have the cause:

    >>> with database.read() as connection:
    ...     connection.exec_driver_sql("SELECT 1 FROM nothing")
    Traceback (most recent call last):
    causeway.errors.DatabaseFailed: The database of the notes did not do what it was asked to; try again later.
    >>> database.close()
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        answer_timeout: int | None = ANSWER_TIMEOUT,
        synchronous: bool = True,
        budget: ConnectionBudget | None = None,
    ) -> None:
        """``answer_timeout``: seconds after which a server that does not answer has failed; None for never.

        ``budget``: limits the connections; None for the limit of a single database. ``synchronous``: commits to SQLite survive a
        power cut. Database servers have their own settings.
        """
        self.name = name
        #: called after each commit that changed servers' states, once for each server; what it raises is logged
        self.observer: Observer | None = None
        self.synchronous = synchronous
        self.url = database_urls.parse(url, name)
        options: dict[str, Any] = {
            "json_serializer": lambda value: msgspec.json.encode(value).decode(),
            "json_deserializer": msgspec.json.decode,
            "pool_timeout": LOCK_TIMEOUT,
        }
        if self.url.get_backend_name() == "sqlite":
            options["connect_args"] = {"timeout": LOCK_TIMEOUT, "check_same_thread": False}
        else:
            options["connect_args"] = _timeouts(self.url.get_backend_name(), answer_timeout)
            # MariaDB's driver reports a dead connection in ways of its own, before the first statement.
            options["pool_pre_ping"] = self.url.get_backend_name() != "postgresql"
            if self.url.get_backend_name() != "postgresql":
                # MariaDB's default level locks gaps between rows: servers that are copied into a cell at the same time would
                # deadlock. PostgreSQL gets this level as the default of its session.
                options["isolation_level"] = "READ COMMITTED"
        #: a new connection each time, of no pool and no budget
        self.pinger = sa.create_engine(self.url, poolclass=sa.NullPool, connect_args=options["connect_args"])
        if budget is None:
            options["pool_size"], options["max_overflow"] = 10, 90 if self.is_sqlite else 50
        else:
            options["poolclass"], options["budget"] = BudgetPool, budget
        self.engine = sa.create_engine(self.url, **options)
        if self.url.get_backend_name() == "postgresql" and answer_timeout is not None:
            # The server may say so first.
            for engine in (self.engine, self.pinger):
                overdue.limit(engine.dialect, statement=answer_timeout * OVERDUE, ping=CONNECT_TIMEOUT)
        self._begin = _BEGIN.get(self.url.get_backend_name())
        if self._begin is not None:
            event.listen(self.engine, "connect", self._prepare_sqlite if self.is_sqlite else _commit_each)
        if options.get("pool_pre_ping") is False:
            event.listen(self.engine, "checkin", _note_return)
            event.listen(self.engine, "checkout", self._ping_if_idle)
        self._in_use = metrics.DATABASE_CONNECTIONS.labels("api" if name == API else "cell")
        # After the ping, which may refuse a connection.
        event.listen(self.engine, "checkout", self._note_use)
        event.listen(self.engine, "checkin", self._note_end_of_use)
        # Not events of connections: SQLAlchemy would prepare these anew for each connection, a tenth of a statement's time.
        for kind in ("do_execute", "do_executemany", "do_execute_no_params"):
            event.listen(self.engine, kind, self._count)
        # The driver's own errors come from what is done to a connection without a statement.
        self._failures = (*_FAILURES, self.engine.dialect.loaded_dbapi.Error)

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    def _count(self, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement != self._begin:
            statements.add(self.name, statement)

    def _ping_if_idle(self, connection: Any, record: Any, _proxy: Any) -> None:
        """Pings a connection that was not used for a while: the server may have restarted, or a firewall may have closed it."""
        returned = record.info.get(_RETURNED)
        if returned is None or time.monotonic() - returned < PING_AFTER:
            return
        dialect = self.engine.dialect
        try:
            alive = dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as failure:
            raise sa.exc.InvalidatePoolError from failure
        if not alive:
            raise sa.exc.InvalidatePoolError

    def _note_use(self, _connection: Any, record: Any, _proxy: Any) -> None:
        record.record_info[_IN_USE] = True
        self._in_use.inc()

    def _note_end_of_use(self, _connection: Any, record: Any) -> None:
        # One that was refused on its way out comes back, too.
        if record.record_info.pop(_IN_USE, False):
            self._in_use.dec()

    def _prepare_sqlite(self, connection: Any, _record: Any) -> None:
        # Transactions are begun by `write`, not by the driver's guess at what a statement does.
        connection.isolation_level = None
        # In place of SQLAlchemy's, which backtracks.
        connection.create_function("regexp", 2, sqlite_regexp, deterministic=True)
        cursor = connection.cursor()
        pragmas = {
            "journal_mode": "WAL",
            # NORMAL never damages the file either, but a power cut may undo the last commits: for example a pivot whose
            # source is deleted already.
            "synchronous": "FULL" if self.synchronous else "NORMAL",
            "foreign_keys": "ON",
            "busy_timeout": LOCK_TIMEOUT * 1000,
        }
        for name, value in pragmas.items():
            cursor.execute(f"PRAGMA {name}={value}")
        cursor.close()

    def ping(self) -> None:
        """Raises DatabaseFailed unless the database answers."""
        with self.read() as connection:
            connection.execute(sa.select(1))

    def ping_anew(self) -> None:
        """As `ping`, on a new connection, not one of the pool, which slow statements may have used up."""
        try:
            with self.pinger.connect() as connection:
                connection.execute(sa.select(1))
        except self._failures as failure:
            raise self._translate(failure) from failure

    def commit_each(self, connection: sa.Connection, each: bool) -> None:
        """Sets whether each statement of a connection is a transaction by itself. Only PostgreSQL's driver begins transactions;
        it changes this without asking the server.

        SQLAlchemy's isolation level would be reset when the connection is returned. If the connection is broken by then, that
        raises the driver's error, and the connection's place in the pool is lost.
        """
        if self._begin is None:
            driver: Any = connection.connection.driver_connection
            driver.autocommit = each

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection for statements that only read. Each sees the latest committed state."""
        try:
            connection = self.engine.connect()
            try:
                self.commit_each(connection, True)
                yield connection
            finally:
                self._return_reader(connection)
        except self._failures as failure:
            raise self._translate(failure) from failure

    def _return_reader(self, connection: sa.Connection) -> None:
        """Returns a connection to the pool, which makes another one if it is broken. What was read of it is valid."""
        try:
            connection.close()
        except sa.exc.DBAPIError as failure:
            LOG.info("A connection to %s broke after its last answer: %s", self.name, failure.orig)
            connection.invalidate(failure)
            connection.close()

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """One transaction: it is committed at the end of the block, and rolled back if the block raises."""
        try:
            with self.engine.begin() as connection:
                self.commit_each(connection, False)
                changes = None if self.observer is None else state_changes.collect_in(connection)
                self._begin_in(connection)
                yield connection
        except self._failures as failure:
            raise self._translate(failure) from failure
        if changes is not None:
            self._notify_observer(changes.all())

    def _notify_observer(self, changes: list[StateChange]) -> None:
        for change in changes:
            try:
                if self.observer is not None:
                    self.observer(self, change)
            except Exception:
                # The change is committed: its writer must not fail.
                LOG.exception("A change of server %s in %s was saved, but not observed", change.uuid, self.name)

    def _begin_in(self, connection: sa.Connection) -> None:
        if self._begin is None:
            return
        if not self.is_sqlite:
            connection.exec_driver_sql(self._begin)
            return
        # Directly, because SQLAlchemy's preparation of a statement takes four times as long as this statement.
        driver: Any = connection.connection.driver_connection
        try:
            driver.execute(self._begin)
        except sqlite3.Error as failure:
            raise sa.exc.OperationalError(self._begin, None, failure) from failure

    def _translate(self, failure: Exception) -> Exception:
        if isinstance(failure, sa.exc.IntegrityError):
            return failure
        cause = failure.orig if isinstance(failure, sa.exc.DBAPIError) else failure
        return errors.DatabaseFailed(
            f"The database of {self.name} did not do what it was asked to; try again later.",
            details=f"{type(cause).__name__}: {cause}",
        )

    def close(self) -> None:
        self.engine.dispose()


Observer = Callable[[Database, StateChange], None]


def _timeouts(backend: str, answer: int | None) -> dict[str, Any]:
    """Options for the driver, so that no caller waits for ever for a server that does not answer."""
    if backend == "postgresql":
        session = r"-c default_transaction_isolation=read\ committed"
        if answer is None:
            return {"connect_timeout": CONNECT_TIMEOUT, "options": session}
        session += f" -c statement_timeout={answer * 1000}"
        return {"connect_timeout": CONNECT_TIMEOUT, "tcp_user_timeout": answer * 1000, "options": session}
    if backend in ("mysql", "mariadb"):
        # Otherwise longer values would be truncated silently: all tags of a server are one value.
        whole = {"init_command": "SET SESSION group_concat_max_len = 1048576"}
        limits = {"read_timeout": answer, "write_timeout": answer} if answer is not None else {}
        return {"connect_timeout": CONNECT_TIMEOUT} | whole | limits
    return {}


def _note_return(_connection: Any, record: Any) -> None:
    record.info[_RETURNED] = time.monotonic()


def _commit_each(connection: Any, _record: Any) -> None:
    """MariaDB's driver asks the server for each change of the mode."""
    connection.autocommit(True)
