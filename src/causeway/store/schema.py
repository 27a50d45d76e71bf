"""Creates and upgrades the schemas (Alembic, one history per database kind)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from alembic import command
from alembic.config import Config

from causeway.store.database import Database

Kind = Literal["api", "cell"]

MIGRATIONS = Path(__file__).parent / "migrations"


def _config(kind: Kind) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS / kind))
    return config


def sync(database: Database, kind: Kind) -> None:
    """Brings a database to the newest schema; quick if it is there already."""
    config = _config(kind)
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
