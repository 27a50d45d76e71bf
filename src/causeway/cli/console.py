"""``causeway console``: the page for operators, served on loopback."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from causeway.cli import ask, machine_failures
from causeway.cli.ready import say_ready

if TYPE_CHECKING:
    from causeway.operators_page.app import Console

THREADS = 24


def make_console(state_dir: Path, os_cloud: str | None, prefix: str = "") -> tuple[Console, str]:
    """The console, and the path that opens it once. ``prefix``: where it is mounted. Raises NotAsked."""
    from causeway.operators_page.app import Console
    from causeway.operators_page.cloud import Cloud
    from causeway.operators_page.sessions import Sessions

    sessions = Sessions()
    made = Console(Cloud(ask.connect(state_dir, os_cloud).compute), sessions, prefix)
    return made, f"{prefix}/enter?token={sessions.token}"


@click.command()
@ask.state_dir_option
@ask.os_cloud_option
@click.option("--port", default=0, show_default=True, help="0 picks a free one.")
def console(state_dir: Path, os_cloud: str | None, port: int) -> None:
    """Serve a page that shows cells, drains and operations as they change, for one operator on this machine.

    It uses the API only. Prints a URL that opens it once. Ctrl-C ends it.
    """
    from causeway.http.server import make_server

    made, way_in = make_console(state_dir, os_cloud)
    with machine_failures.reported():
        server = make_server("127.0.0.1", port, made.app, threads=THREADS, name="causeway-console")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    thread = threading.Thread(target=server.serve, name="console", daemon=True)
    thread.start()
    try:
        say_ready(f"http://127.0.0.1:{server.bind_addr[1]}{way_in}")
        stop.wait()
    finally:
        # Also if nobody reads what it says: its threads would keep the process alive.
        made.stopping.set()
        server.stop()
        thread.join()
