"""A cloud of the real Nova, with real guests, in two cells with two hosts each; all of it ends with the block."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.functional.processes import rabbit
from tests.functional.processes.rabbit import Broker, own_broker
from tests.integration.adopt.nova import Nova
from tests.integration.database_servers import database_server
from tests.integration.real_services import guests
from tests.integration.real_services.guests import ServicesWithAgents
from tests.integration.real_services.machine import VENV
from tests.integration.real_services.machines import Machines
from tests.ports import free_port

CELLS = {"cell1": ("cell1-host1", "cell1-host2"), "cell2": ("cell2-host1", "cell2-host2")}


def missing() -> str | None:
    """What keeps this machine from running it, in one sentence; None if nothing does."""
    if not (VENV / "bin/nova-compute").exists():
        return "Nova is not installed: scripts/install-nova.sh does that"
    return guests.missing()


@dataclass(frozen=True)
class NovaCloud:
    """``broker`` has virtual hosts of Nova's, of Causeway's, and of the services around. ``new_database``: gives the URL of the
    database of a name, which may be new."""

    directory: Path
    machines: Machines
    services: ServicesWithAgents
    nova: Nova
    broker: Broker
    new_database: Callable[[str], str]


@contextmanager
def nova_cloud(
    directory: Path,
    *,
    cells: Mapping[str, Sequence[str]] = CELLS,
    host_options: Mapping[str, Mapping[str, object]] | None = None,
) -> Iterator[NovaCloud]:
    """Everything, started. ``host_options``: more of the nova.conf of all hosts, by group."""
    with ExitStack() as undo:
        machines = Machines(directory, [host for hosts in cells.values() for host in hosts])
        undo.callback(machines.stop)
        new_database = undo.enter_context(database_server("mariadb"))
        virtual_hosts = (*rabbit.HOSTS, "nova", *(f"nova-{cell}" for cell in cells))
        broker = undo.enter_context(own_broker(directory / "rabbit", machines.address, virtual_hosts))
        port = free_port()
        services = ServicesWithAgents(
            directory / "services",
            machines,
            queue=f"{broker.url}/services",
            new_database=new_database,
            compute_url=f"http://{machines.address}:{port}/v2.1",
        )
        undo.callback(_kill_helpers, machines)
        undo.callback(services.stop)
        nova = Nova(
            services,
            machines,
            cells=cells,
            port=port,
            queue=broker.url,
            new_database=new_database,
            host_options=host_options or {},
        )
        machines.start()
        nova.configure()
        with ThreadPoolExecutor(1) as pool:
            databases = pool.submit(nova.make_databases)
            services.start()
            databases.result()
        nova.start()
        yield NovaCloud(directory, machines, services, nova, broker, new_database)


def _kill_helpers(machines: Machines) -> None:
    """Those of computes are nobody's children, and may outlive who started them."""
    for endpoint in machines.endpoints.values():
        command = ["ip", "netns", "pids", endpoint.netns]
        found = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout
        for pid in map(int, found.split()):
            with suppress(FileNotFoundError, ProcessLookupError):
                if b"privsep-helper" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)


@contextmanager
def nova_cloud_here() -> Iterator[NovaCloud]:
    """A `nova_cloud` in a folder of its own. Skips the test if this machine can't run it."""
    if reason := missing():
        pytest.skip(reason)
    with (
        # Short: sockets are below it.
        tempfile.TemporaryDirectory(prefix="cw-nova-", ignore_cleanup_errors=True) as folder,
        nova_cloud(Path(folder)) as cloud,
    ):
        yield cloud
