"""``causeway up``: every role in one process."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click
from oslo_config import cfg

from causeway import errors
from causeway.cli import machine_failures
from causeway.cli.ready import say_ready
from causeway.cli.state_dirs import DEFAULT_STATE_DIR

CONSOLE = "/console"


@click.command()
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STATE_DIR,
    show_default=True,
    help="Where everything is stored. A cloud that is started again on the same directory finds everything again.",
)
@click.option("--port", default=8774, show_default=True, help="Port of all APIs; 0 picks a free one.")
@click.option("--console-port", default=0, show_default=True, help="Port of servers' consoles; 0 picks a free one.")
@click.option("--cells", default=2, show_default=True, type=click.IntRange(1), help="Number of cells.")
@click.option("--hosts-per-cell", default=1, show_default=True, type=click.IntRange(1), help="Hosts in each cell.")
@click.option(
    "--driver",
    type=click.Choice(["libvirt", "simulated"]),
    default="simulated",
    show_default=True,
    help="Real guests in QEMU (needs root and libvirt), or simulated ones.",
)
@click.option(
    "--config-file",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    help="Options to use, in nova.conf's form. May be given several times.",
)
@click.option(
    "--policy-file",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    help="Policy to use instead of STATE_DIR/policy.yaml.",
)
@click.option("--debug", is_flag=True, help="Log everything.")
def up(
    state_dir: Path,
    port: int,
    console_port: int,
    cells: int,
    hosts_per_cell: int,
    driver: str,
    config_file: tuple[str, ...],
    policy_file: str | None,
    debug: bool,
) -> None:
    """Run a whole cloud in this process, on embedded parts.

    Says on standard error what it starts, with seconds. Prints "ready: URL" when requests can be served, and "console: URL",
    which opens the page for operators once. Ctrl-C or SIGTERM stops it. Credentials are in STATE_DIR/clouds.yaml: point
    OS_CLIENT_CONFIG_FILE at it, and use the clouds "causeway" (a project member) and "causeway-admin".
    """
    say = _with_seconds()
    say("starting: loads its parts")
    from causeway.cli.console import make_console
    from causeway.embedded.cloud import EmbeddedCloud

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    cloud = EmbeddedCloud(
        state_dir,
        port=port,
        console_port=console_port,
        cells=cells,
        hosts_per_cell=hosts_per_cell,
        driver="libvirt" if driver == "libvirt" else "simulated",
        config_files=config_file,
        policy_file=policy_file,
        overrides={"DEFAULT": {"debug": True}} if debug else None,
        log_file=state_dir.resolve() / "causeway.log",
        on_progress=lambda what: say(f"starting: {what}"),
    )
    ports = {console_port: "--console-port", port: "--port"}
    try:
        with machine_failures.reported(state_dir, ports):
            cloud.start()
    except (cfg.Error, cfg.ConfigFileValueError) as failure:
        raise click.ClickException(f"The configuration can't be used: {failure}") from failure
    except errors.CausewayError as failure:
        raise click.ClickException(f"{failure.message} {failure.details}".strip()) from failure
    with ExitStack() as running:
        # Whatever ends it, also a reader of this output who has gone: its threads would keep the process alive.
        running.callback(cloud.stop)
        console, way_in = make_console(state_dir, None, CONSOLE)
        running.callback(console.stopping.set)
        cloud.web.mount(CONSOLE, console.app)
        say("started")
        say_ready(cloud.url, cloud.notes)
        click.echo(f"console: {cloud.url}{way_in}")
        stop.wait()


def _with_seconds() -> Callable[[str], None]:
    """Returns a function that prints a line to standard error, with the seconds since now."""
    begun = time.monotonic()
    return lambda what: click.echo(f"{time.monotonic() - begun:5.1f} s  {what}", err=True)
