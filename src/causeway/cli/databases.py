"""The databases of a command: those of its configuration, closed when it ends."""

from __future__ import annotations

from contextlib import ExitStack

import click
from oslo_config import cfg

from causeway.roles.conductor import cells_of
from causeway.store.cells import Cells
from causeway.store.database import Database


def api_and_cells(conf: cfg.ConfigOpts, cleanup: ExitStack) -> tuple[Database, Cells]:
    """The API database and, through it, the cells'; closed with ``cleanup``."""
    api = api_database(conf)
    cleanup.callback(api.close)
    cells = cells_of(conf, api)
    cleanup.callback(cells.close)
    return api, cells


def api_database(conf: cfg.ConfigOpts) -> Database:
    if not conf.api_database.connection:
        raise click.ClickException("Set [api_database] connection to the URL of the API database.")
    return Database(conf.api_database.connection, "the API", synchronous=conf.api_database.sqlite_synchronous)
