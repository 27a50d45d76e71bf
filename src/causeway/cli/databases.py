"""The databases of a command: those of its configuration, closed when it ends."""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing

import click
from oslo_config import cfg

from causeway import errors
from causeway.roles.cells import cells_of
from causeway.store import schema
from causeway.store.cells import Cells
from causeway.store.database import API, Database

LOG = logging.getLogger(__name__)


# Seconds for a database to say what it is. One that does not answer is dealt with by whoever asks it next.
_LOOK_SECONDS = 5


def api_and_cells(conf: cfg.ConfigOpts, cleanup: ExitStack, *, is_known: bool = False) -> tuple[Database, Cells]:
    """The API database and, through it, the cells'; closed with ``cleanup``. ``is_known``: see `api_database`."""
    api = api_database(conf, is_known=is_known)
    cleanup.callback(api.close)
    cells = cells_of(conf, api)
    cleanup.callback(cells.close)
    return api, cells


def api_database(conf: cfg.ConfigOpts, *, is_known: bool = False) -> Database:
    """The API database. Raises ClickException if it is another one's, unless ``is_known`` says that this was looked at."""
    if not conf.api_database.connection:
        raise click.ClickException("Set [api_database] connection to the URL of the API database.")
    if not is_known:
        _refuse_foreign(conf.api_database.connection, API, "api")
    return Database(conf.api_database.connection, API, synchronous=conf.api_database.sqlite_synchronous)


def cell_database(conf: cfg.ConfigOpts) -> Database:
    """The database of the cell whose conductor this is. Raises ClickException if it is another one's."""
    if not conf.database.connection:
        raise click.ClickException("Set [database] connection to the URL of the cell's database.")
    _refuse_foreign(conf.database.connection, "the cell", "cell")
    return Database(conf.database.connection, "the cell", synchronous=conf.database.sqlite_synchronous)


def _refuse_foreign(url: str, name: str, kind: schema.Kind) -> None:
    with closing(Database(url, name, answer_timeout=_LOOK_SECONDS)) as database:
        try:
            schema.state(database, kind)
        except errors.Misconfigured as failure:
            raise click.ClickException(failure.message) from failure
        except errors.DatabaseFailed as failure:
            LOG.info("Nothing is known of the database of %s: %s", name, failure.details)
