"""``causeway api`` and ``causeway metadata``: what is served by HTTP, in processes of its own."""

from __future__ import annotations

from pathlib import Path

import click
from oslo_log import log

from causeway.cli import databases, processes
from causeway.cli.web_processes import ApiProcesses, MetadataProcesses
from causeway.conf import PROJECT
from causeway.metadata.callers import check_options
from causeway.policy import Enforcer
from causeway.without_effect import without_effect


@click.command()
@processes.config_file_option
@click.option("--bind", default="127.0.0.1:8774", show_default=True, help="Address and port, or unix:PATH.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help="Processes.")
@click.option("--threads", default=16, show_default=True, type=click.IntRange(1), help="Threads of each process.")
def api(config_files: tuple[Path, ...], bind: str, workers: int, threads: int) -> None:
    """Run the Compute API in processes of its own (gunicorn).

    Needs [api_database] connection, transport_url, [keystone_authtoken], [placement] and credentials for the services
    around. SIGTERM finishes the requests under way; SIGHUP starts the workers anew.
    """
    conf = processes.configuration(config_files, with_tokens=True)
    processes.check_queue(conf)
    processes.check_placement(conf)
    with processes.failures_reported():
        databases.api_database(conf).close()
        # Here, because gunicorn would restart failing workers again and again.
        Enforcer(conf)
    log.setup(conf, PROJECT)
    notes = without_effect(conf, with_policy=True)
    ApiProcesses(conf, notes, bind=bind, workers=workers, threads=threads).serve()


@click.command()
@processes.config_file_option
@click.option("--bind", default="127.0.0.1:8775", show_default=True, help="Address and port, or unix:PATH.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help="Processes.")
@click.option("--threads", default=16, show_default=True, type=click.IntRange(1), help="Threads of each process.")
def metadata(config_files: tuple[Path, ...], bind: str, workers: int, threads: int) -> None:
    """Run the metadata service in processes of its own (gunicorn): what guests ask about themselves.

    Needs [api_database] connection. Behind the network service's metadata agent: [neutron] service_metadata_proxy and
    metadata_proxy_shared_secret; for guests that ask directly: credentials for the network service. Needs no queue, no Placement.
    """
    conf = processes.configuration(config_files)
    with processes.failures_reported():
        databases.api_database(conf).close()
        # Here, because gunicorn would restart failing workers again and again.
        check_options(conf)
    log.setup(conf, PROJECT)
    notes = without_effect(conf, with_policy=False, with_tokens=False)
    MetadataProcesses(conf, notes, bind=bind, workers=workers, threads=threads).serve()
