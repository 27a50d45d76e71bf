"""``causeway console-proxy``: a proxy between browsers and the consoles of guests."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click
from oslo_config import cfg

from causeway.cli import databases, processes
from causeway.roles.console_proxy import make_console_proxy


@click.command("console-proxy")
@processes.config_file_option
@click.option("--bind", default="127.0.0.1:6080", show_default=True, help="Address and port, [ADDRESS]:PORT for IPv6.")
def console_proxy(config_files: tuple[Path, ...], bind: str) -> None:
    """Run a console proxy: it serves the pages of consoles, and passes on what users and guests send.

    Needs [api_database] connection and transport_url, and to reach the addresses at which the hosts' consoles listen. [vnc]
    novncproxy_base_url and [serial_console] base_url of the computes must name it. Open consoles end with it.
    """
    address, _, port = bind.rpartition(":")
    if not address or not port.isdecimal():
        raise click.BadParameter(f"{bind} is not an address with a port.", param_hint="--bind")
    processes.serve("console-proxy", config_files, partial(_start, address.strip("[]"), int(port)))


def _start(address: str, port: int, conf: cfg.ConfigOpts, cleanup: ExitStack) -> None:
    transports = processes.transports(conf, cleanup)
    _database, cells = databases.api_and_cells(conf, cleanup)
    processes.expose_metrics(conf, cleanup)
    try:
        proxy = make_console_proxy(conf, transports, cells, address, port)
    except OSError as failure:
        raise click.ClickException(f"--bind {address}:{port}: {failure}") from failure
    cleanup.callback(proxy.stop)
    proxy.start()
