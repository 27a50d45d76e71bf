"""``causeway conductor``: a conductor in a process of its own, of the cloud, of cells, or both."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click
from oslo_config import cfg

from causeway.cli import databases, processes
from causeway.conf.conductor import CELL, SUPER
from causeway.model.host import CellMapping
from causeway.operations.metrics import OperationsCollector
from causeway.roles.conductor import make_cell_conductor, make_conductor

LOG = logging.getLogger(__name__)


@click.command()
@processes.config_file_option
def conductor(config_files: tuple[Path, ...]) -> None:
    """Run a conductor in a process of its own.

    It drives builds and moves, and takes the reports of the cells in [conductor] cells (all). Needs [api_database] connection,
    transport_url, [placement] and credentials for the services around. Each conductor gets a `host` of its own: it names the
    owner of moves. SIGTERM finishes the steps under way; other conductors take over the moves.

    With [conductor] role = super it takes no reports. With role = cell it takes those of one cell and does nothing else: it
    needs the cell's transport_url and [database] connection, and nothing of the cloud's.
    """
    processes.serve("conductor", config_files, _start_conductor)


def _start_conductor(conf: cfg.ConfigOpts, cleanup: ExitStack) -> None:
    if conf.conductor.role == CELL:
        _start_cell_conductor(conf, cleanup)
        return
    around = processes.around(conf, cleanup)
    database, cells = databases.api_and_cells(conf, cleanup)
    chosen_cells(cells.mappings(cell0=False), conf.conductor.cells)
    reporting = [] if conf.conductor.role == SUPER else conf.conductor.cells or None
    processes.expose_metrics(conf, cleanup, [OperationsCollector(database)])
    service = make_conductor(around, database, cells, conf.host, of_cells=reporting)
    cleanup.callback(service.stop)
    service.start()
    service.recover()


def _start_cell_conductor(conf: cfg.ConfigOpts, cleanup: ExitStack) -> None:
    database = databases.cell_database(conf)
    cleanup.callback(database.close)
    if conf.api_database.connection:
        LOG.warning("The conductor of a cell needs no API database: take [api_database] out of its configuration")
    processes.expose_metrics(conf, cleanup)
    service = make_cell_conductor(conf, processes.transports(conf, cleanup), conf.host, database, conf.transport_url)
    cleanup.callback(service.stop)
    service.start()


def chosen_cells(cells: Sequence[CellMapping], names: Sequence[str]) -> list[CellMapping]:
    """The cells with these names or uuids; all if there are no names. Raises ClickException for an unknown one."""
    unknown = [name for name in names if not any(name in (cell.name, cell.uuid) for cell in cells)]
    if unknown:
        raise click.ClickException(
            f"[conductor] cells: there is no cell {', '.join(unknown)}. See `causeway manage cell list`."
        )
    return [cell for cell in cells if not names or cell.name in names or cell.uuid in names]
