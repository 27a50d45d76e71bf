"""``causeway scheduler``: a scheduler in a process of its own."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click
from oslo_config import cfg

from causeway.cli import databases, processes
from causeway.roles.scheduler import SchedulerService


@click.command()
@processes.config_file_option
def scheduler(config_files: tuple[Path, ...]) -> None:
    """Run a scheduler in a process of its own.

    Needs [api_database] connection, transport_url and [placement].
    """
    processes.serve("scheduler", config_files, _start_scheduler)


def _start_scheduler(conf: cfg.ConfigOpts, cleanup: ExitStack) -> None:
    around = processes.around(conf, cleanup)
    _database, cells = databases.api_and_cells(conf, cleanup)
    processes.expose_metrics(conf, cleanup)
    service = SchedulerService(around, cells, conf.host)
    cleanup.callback(service.stop)
    service.start()
