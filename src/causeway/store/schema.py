"""Creates and upgrades the schemas (Alembic, one history per database kind)."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from causeway import errors
from causeway.store import foreign_schema
from causeway.store.api_tables import ApiBase
from causeway.store.cell_tables import CellBase
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

Kind = Literal["api", "cell"]

# Seconds that a change of a table waits for others at a time, and how often it is tried.
LOCK_SECONDS, LOCK_ATTEMPTS = 2, 30
# MariaDB: seconds between two checks whether nobody uses the table, and how many there are before a change waits for its turn.
LOOK_SECONDS, LOOKS = 0.05, 600

MIGRATIONS = Path(__file__).parent / "migrations"


def _config(kind: Kind) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS / kind))
    return config


@dataclass(frozen=True)
class SchemaState:
    """``current``: the database's revision (None: it has no schema). ``newest`` and ``known``: of this package."""

    current: str | None
    newest: str
    known: frozenset[str]

    @property
    def is_newer(self) -> bool:
        """Whether a newer release made it. All revisions are numbers of four digits."""
        return self.current is not None and self.current > self.newest


def state(database: Database, kind: Kind) -> SchemaState:
    """The state of a database's schema. Raises DatabaseFailed, and Misconfigured if it is not Causeway's or of another kind."""
    newest, known = _revisions(MIGRATIONS / kind)
    with database.read() as connection:
        # Other software may have several.
        heads = MigrationContext.configure(connection).get_current_heads()
        if len(heads) != 1 or heads[0] not in known:
            foreign_schema.refuse(database.name, kind, heads, sa.inspect(connection).get_table_names(), _tables(kind))
    return SchemaState(heads[0] if heads else None, newest, known)


def _tables(kind: Kind) -> frozenset[str]:
    return frozenset((ApiBase if kind == "api" else CellBase).metadata.tables)


@cache
def _revisions(folder: Path) -> tuple[str, frozenset[str]]:
    """The newest revision of a folder of this package, and all of them."""
    scripts = ScriptDirectory(str(folder))
    return str(scripts.get_current_head()), frozenset(script.revision for script in scripts.walk_revisions())


def sync(database: Database, kind: Kind) -> None:
    """Upgrades a database to the newest schema; quick if it has it already. Services may use the database meanwhile.

    A new database gets everything in one transaction. An older one is changed statement by statement, each in its own
    transaction: a transaction that locks several tables would deadlock with services, which lock them in another order. A
    revision that stopped in the middle can be repeated. Raises DatabaseFailed if it did not get its locks, or does not know the
    database's revision, and Misconfigured if the database is not Causeway's.
    """
    found = state(database, kind)
    if found.current == found.newest:
        return
    if found.current is not None and found.current not in found.known:
        raise errors.DatabaseFailed(
            f"The schema of {database.name} has revision {found.current}, which this release does not know: "
            + ("a newer release made it. Upgrade the package." if found.is_newer else "one before 0.1.0 made it.")
        )
    if database.is_sqlite or found.current is None:
        with database.write() as connection:
            _upgrade(connection, kind)
        return
    last: sa.exc.OperationalError | None = None
    for seconds, pause in _tries(database):
        try:
            with database.engine.connect() as connection:
                database.commit_each(connection, True)
                _bound_waiting(connection, seconds)
                _upgrade(connection, kind)
            return
        except sa.exc.OperationalError as failure:
            if not _is_lock(failure):
                raise
            LOG.log(
                logging.WARNING if seconds else logging.DEBUG,
                "A table of %s is in use: its schema is changed a little later",
                database.name,
            )
            last = failure
        # Statements that queued up behind this one go first.
        threading.Event().wait(pause)
    raise errors.DatabaseFailed(
        f"The schema of {database.name} could not be changed: its tables were locked all the time. End long"
        " transactions (backups, reports) and repeat it.",
        details=str(last.orig) if last is not None else "",
    ) from last


def _tries(database: Database) -> Iterator[tuple[int, float]]:
    """Yields for how long each attempt waits for its locks, and the pause after it, in seconds.

    PostgreSQL lets a transaction that has read a table write to it before a waiting change of the table. MariaDB ends that
    transaction as the victim of a deadlock, so there a change waits for locks only if the table was never found unused.
    """
    if database.engine.dialect.name != "postgresql":
        yield from itertools.repeat((0, LOOK_SECONDS), LOOKS)
    yield from itertools.repeat((LOCK_SECONDS, LOCK_SECONDS), LOCK_ATTEMPTS)


def _upgrade(connection: sa.Connection, kind: Kind) -> None:
    config = _config(kind)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _bound_waiting(connection: sa.Connection, seconds: int) -> None:
    """Limits how long a change of a table waits for its lock, since everything that comes after it waits too."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET lock_timeout = '{seconds}s'")
    else:
        connection.exec_driver_sql(f"SET SESSION lock_wait_timeout = {seconds}")


def _is_lock(failure: sa.exc.OperationalError) -> bool:
    """PostgreSQL: lock_not_available, deadlock_detected; MariaDB: ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK."""
    code = getattr(failure.orig, "pgcode", None) or (failure.orig.args[:1] if failure.orig else ())
    return code in ("55P03", "40P01", (1205,), (1213,))
