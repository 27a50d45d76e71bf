"""What all commands share that run a service in a process of its own: options, logs, signals, and an orderly end.

SIGTERM and SIGINT end a service: it accepts nothing new, finishes what it has begun, and closes what it opened in reverse
order. A second signal ends it at once. So does the end of `ENDS_WITHIN`: who is waited for may be a neighbour that never answers.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import click
import oslo_messaging
from keystoneauth1 import exceptions as keystone_errors
from oslo_config import cfg
from oslo_log import log

from causeway import errors
from causeway.cli import machine_failures
from causeway.cli.database_errors import database_errors
from causeway.cli.ready import say_ready
from causeway.clients.placement import remote_placement
from causeway.conf import PROJECT, new_config, paths
from causeway.conf.conductor import CELL
from causeway.faults import hooks
from causeway.metrics.endpoint import Collector, MetricsEndpoint
from causeway.roles.surroundings import Surroundings, make_surroundings, make_transports
from causeway.rpc import signatures
from causeway.rpc.transport import Transports
from causeway.without_effect import without_effect

LOG = logging.getLogger(__name__)

#: role -> seconds from the signal within which it has ended; its unit of systemd waits for longer
ENDS_WITHIN = {
    "conductor": 100.0,
    "cell-conductor": 50.0,
    "scheduler": 50.0,
    "compute": 100.0,
    "console-proxy": 25.0,
}
# Of a process that ended in the middle of something.
CUT_OFF_STATUS = 1

config_file_option = click.option(
    "--config-file",
    "config_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Options in nova.conf's form; may be given several times, later ones win. Without it: /etc/causeway/causeway.conf"
    " and the other places of oslo.config.",
)


def configuration(config_files: Sequence[Path], *, with_tokens: bool = False) -> cfg.ConfigOpts:
    """The options of this process. Raises ClickException, also if a file or folder that they name is not there.

    ``with_tokens``: it validates tokens, so the options for that count, too.
    """
    try:
        conf = new_config(config_files=config_files or cfg.find_config_files(project=PROJECT))
        paths.resolve(conf, with_tokens=with_tokens)
        return conf
    except (cfg.Error, cfg.ConfigFileParseError, cfg.ConfigFileValueError) as failure:
        raise click.ClickException(f"The configuration can't be read: {failure}") from failure


def check_queue(conf: cfg.ConfigOpts) -> None:
    """Raises ClickException if the queue's URL or the keys for its messages are unusable.

    Otherwise only the first request would show that, or a worker of gunicorn, which is started again and again.
    """
    if not conf.transport_url:
        raise click.ClickException("Set [DEFAULT] transport_url, such as rabbit://user:password@host:5672/cloud.")
    if conf.transport_url.startswith("causeway-memory:"):
        raise click.ClickException("In-memory queues end with their process: set [DEFAULT] transport_url to RabbitMQ.")
    with failures_reported():
        signatures.from_options(conf)


def check_placement(conf: cfg.ConfigOpts) -> None:
    """Raises ClickException if there are no credentials for Placement."""
    if not conf.placement.auth_type:
        raise click.ClickException("Set [placement] auth_type, and what goes with it, to reach the Placement service.")


def around(conf: cfg.ConfigOpts, cleanup: ExitStack) -> Surroundings:
    """Queues and clients of the services around, closed with ``cleanup``."""
    check_placement(conf)
    made = make_surroundings(conf, remote_placement(conf))
    cleanup.callback(made.close)
    return made


def transports(conf: cfg.ConfigOpts, cleanup: ExitStack) -> Transports:
    """Only queues, for processes that need none of the services around; closed with ``cleanup``."""
    made = make_transports(conf)
    cleanup.callback(made.cleanup)
    cleanup.callback(hooks.uninstall, conf)
    return made


def expose_metrics(
    conf: cfg.ConfigOpts, cleanup: ExitStack, collectors: Sequence[Collector] = (), *, shared: bool = False
) -> None:
    """Serves /metrics until ``cleanup``, if it is configured."""
    try:
        endpoint = MetricsEndpoint(conf, collectors, shared=shared)
    except (OSError, ValueError) as failure:
        raise click.ClickException(f"[metrics] bind {conf.metrics.bind}: {failure}") from failure
    cleanup.callback(endpoint.stop)


@contextmanager
def failures_reported() -> Iterator[None]:
    """Turns failures of databases, queues and other services into errors of the command, in one line."""
    try:
        yield
    except errors.CausewayError as failure:
        raise click.ClickException(f"{failure.message} {failure.details}".strip()) from failure
    except database_errors() as failure:
        raise click.ClickException(f"A database failed: {failure}") from failure
    except keystone_errors.ClientException as failure:
        raise click.ClickException(f"Identity or Placement can't be used: {failure}") from failure
    except (oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure) as failure:
        raise click.ClickException(f"The transport URL can't be used: {failure}") from failure


def end_within(seconds: float) -> None:
    """Ends this process after so many seconds, whatever it still waits for. What it has begun is continued as after a crash."""

    def cut_off() -> None:
        waiting = sorted(thread.name for thread in threading.enumerate() if not thread.daemon)
        LOG.warning(
            "Ended after %g s in the middle of its work; threads that still ran: %s", seconds, ", ".join(waiting)
        )
        logging.shutdown()
        os._exit(CUT_OFF_STATUS)

    limit = threading.Timer(seconds, cut_off)
    limit.daemon = True
    limit.start()


class _Ended(BaseException):
    """A signal came. It is not an Exception, since nothing on the way may catch it."""


def serve(role: str, config_files: Sequence[Path], start: Callable[[cfg.ConfigOpts, ExitStack], None]) -> None:
    """Runs a service until a signal ends it. ``start`` starts it, and adds to the ``ExitStack`` what stops it again."""
    conf = configuration(config_files)
    check_queue(conf)
    log.setup(conf, PROJECT)
    notes = without_effect(conf, with_policy=False, with_tokens=False)

    def end(*_: Any) -> NoReturn:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        is_cell = role == "conductor" and conf.conductor.role == CELL
        end_within(ENDS_WITHIN["cell-conductor" if is_cell else role])
        raise _Ended

    # Before it starts, which waits without end while RabbitMQ is unreachable.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    # _Ended is caught before ``cleanup`` closes libraries, which look at the exception in flight.
    folder = Path(conf.state_path)
    with machine_failures.reported(folder), failures_reported(), ExitStack() as cleanup, suppress(_Ended):
        start(conf, cleanup)
        say_ready(f"{role} {conf.host}", notes)
        threading.Event().wait()
