"""Many simulated hosts in one process, for benchmarks only: each a whole compute service, but with shared connections.

``python -m benchmarks.scale.hosts --config-file ... --cell NAME TRANSPORT_URL HOST,HOST,... [--cell ...]``

A compute of its own has a connection to RabbitMQ to listen on, with a thread that polls it, a thread that reports, and a
listener for disks. Here the hosts of a cell share the first two of all three, and disks go through the image service.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click
import oslo_messaging
from oslo_log import log
from oslo_messaging._drivers import amqpdriver, base
from oslo_messaging._drivers import common as driver_common

from causeway import errors
from causeway.cli import processes
from causeway.compute.service import ComputeService
from causeway.conf import PROJECT
from causeway.roles.compute import make_compute
from causeway.rpc.compute import TOPIC
from causeway.rpc.server import MessagingServer
from causeway.virt.simulated import SimulatedDriver
from causeway.virt.simulated.hardware import from_options

LOG = logging.getLogger(__name__)
# What a message is marked with: the host whose queue it came from.
HOST = "benchmark_host"
THREADS = 32


class Switchboard(oslo_messaging.RPCDispatcher):  # type: ignore[misc]
    """Gives a message to the host that it is for."""

    def __init__(self, computes: dict[str, ComputeService]) -> None:
        super().__init__([], None)
        self._dispatchers = {name: one._server._server.dispatcher for name, one in computes.items()}

    def dispatch(self, incoming: Any) -> Any:
        return self._dispatchers[incoming.message.pop(HOST)].dispatch(incoming)


class HostsServer(MessagingServer):
    """Listens for all hosts of a cell on one connection."""

    def __init__(self, transport: Any, cell: str, computes: dict[str, ComputeService]) -> None:
        self._hosts = list(computes)
        target = oslo_messaging.Target(topic=TOPIC, server=cell)
        # What comes late of one host is kept where any of them looks for it.
        late = [one._server._server._late_answers for one in computes.values()]
        for each in late[1:]:
            vars(each).update(vars(late[0]))
        super().__init__(transport.messaging, target, Switchboard(computes), f"hosts-{cell}", late[0])

    def _create_listener(self) -> Any:
        driver = self.transport._driver
        connection = driver._get_connection(driver_common.PURPOSE_LISTEN)
        listener = amqpdriver.RpcAMQPListener(driver, connection)
        exchange = driver._get_exchange(self._target)

        def mark(host: str, message: Any) -> None:
            message[HOST] = host
            listener(message)

        for host in self._hosts:
            connection.declare_topic_consumer(exchange, f"{TOPIC}.{host}", callback=partial(mark, host))
        return base.PollStyleListenerAdapter(listener, 1, None)


def _report(computes: list[ComputeService], interval: float, stop: threading.Event) -> None:
    """Every host once in ``interval`` seconds, one after the other."""
    began = time.monotonic()
    turn = 0
    while not stop.wait(max(0.0, began + turn * interval / len(computes) - time.monotonic())):
        try:
            computes[turn % len(computes)]._reporter.report_alive()
        except errors.CausewayError as failure:
            LOG.warning("No report: %s %s", failure.message, failure.details)
        turn += 1


@click.command()
@processes.config_file_option
@click.option("--cell", "cells", nargs=3, multiple=True, help="Name, transport URL, hosts.")
def main(config_files: tuple[Path, ...], cells: tuple[tuple[str, str, str], ...]) -> None:
    """Runs until SIGTERM; says "ready: hosts" when they listen."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    conf = processes.configuration(config_files)
    log.setup(conf, PROJECT)
    with ExitStack() as cleanup:
        around = processes.around(conf, cleanup)
        everyone: list[ComputeService] = []
        root = Path(conf.state_path) / "hosts"
        for cell, url, names in cells:
            computes = {}
            for name in names.split(","):
                driver = SimulatedDriver(name, root / name, hardware=from_options(conf), peers_dir=root)
                driver.start()
                computes[name] = make_compute(around, name, driver, url, root / name)
                computes[name]._load_claims()
                computes[name]._reporter._uuid = (root / name / "compute_id").read_text()
            server = HostsServer(around.transports.get(url), cell, computes)
            server.start(override_pool_size=THREADS)
            cleanup.callback(server.finish, 10.0)
            cleanup.callback(server.stop)
            everyone += computes.values()
        # One host of each cell after the other.
        everyone.sort(key=lambda one: one.host.name.rpartition("-")[2])
        reports = threading.Thread(target=_report, args=(everyone, conf.report_interval, stop), name="reports")
        reports.start()
        cleanup.callback(reports.join)
        click.echo("ready: hosts")
        stop.wait()


if __name__ == "__main__":
    main()
