"""The cells of a process that is configured for their API database."""

from __future__ import annotations

from oslo_config import cfg

from causeway.store.cells import Cells
from causeway.store.connections import ConnectionBudget
from causeway.store.database import Database


def cells_of(conf: cfg.ConfigOpts, api: Database) -> Cells:
    """The cells that an API database knows of."""
    options = conf.api_database
    budget = ConnectionBudget(options.cell_connections)
    return Cells(api, timeout=options.cell_timeout, max_age=options.cells_refresh_interval, budget=budget)
