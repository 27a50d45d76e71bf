"""Creates and upgrades the schemas (Alembic, one history per database kind)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from causeway.store.database import Database

Kind = Literal["api", "cell"]

MIGRATIONS = Path(__file__).parent / "migrations"


def _config(kind: Kind) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS / kind))
    return config


@dataclass(frozen=True)
class SchemaState:
    """``current`` is the database's revision (None: it has no schema), ``newest`` and ``known`` are this package's."""

    current: str | None
    newest: str
    known: frozenset[str]


def state(database: Database, kind: Kind) -> SchemaState:
    """Which schema a database has. Raises DatabaseFailed."""
    scripts = ScriptDirectory.from_config(_config(kind))
    with database.read() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    known = frozenset(script.revision for script in scripts.walk_revisions())
    return SchemaState(current, str(scripts.get_current_head()), known)


def sync(database: Database, kind: Kind) -> None:
    """Brings a database to the newest schema; quick if it is there already."""
    config = _config(kind)
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
