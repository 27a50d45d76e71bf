"""The processes of a cloud that is measured: every role, Placement, devcloud; and what the machine says of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid as uuids
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import requests
import sqlalchemy as sa

from benchmarks.scale import seed
from causeway.embedded.content import GENERATION
from causeway.model.flavor import Flavor
from causeway.store.api import aggregates, flavors
from causeway.store.database import Database
from tests.ports import free_ports
from tests.process_trees import children, with_children

BIN = Path(sys.executable).parent
PATIENCE = 180.0
# Hosts that are records only do not report: they count as up for as long as a benchmark takes.
REPORT_INTERVAL, DOWN_TIME = 120, 3600
SUPER_CONDUCTORS = (1, 2, 4)
SUPER = "super conductors"
# What the records have, and what is asked of the scheduler; the movers go from one generation to the other.
SMALL = Flavor("small", "small", vcpus=1, memory_mb=128, root_gb=1)
GENERATIONS = tuple(
    Flavor(f"gen{n}", f"gen{n}", vcpus=n, memory_mb=128, root_gb=1, extra_specs={GENERATION: str(n)}) for n in (1, 2)
)
# Of those that move in every way, and may be in any cell: what their guests do is said by its extra specs.
MIXED = "mixed"
OPTIONS: dict[str, dict[str, object]] = {
    "DEFAULT": {"report_interval": REPORT_INTERVAL, "service_down_time": DOWN_TIME, "rpc_response_timeout": 60},
    "api_database": {"cells_refresh_interval": 2},
    # Hosts have no listener for disks here: `hosts` says why.
    "moves": {"direct": "never"},
    "quota": {"instances": -1, "cores": -1, "ram": -1},
    "oslo_messaging_rabbit": {"heartbeat_timeout_threshold": 60},
}


class Launched:
    """A process with its output in a file."""

    def __init__(self, directory: Path, name: str, command: Iterable[str], environment: Mapping[str, str] = {}) -> None:
        self.name = name
        self._log = directory / f"{name}.log"
        with self._log.open("ab") as log:
            self._popen = subprocess.Popen(
                list(command),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONWARNINGS": "ignore", **environment},
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def wait_ready(self) -> str:
        """What follows "ready: "."""

        def look() -> str | None:
            log = self._log.read_text(errors="replace")
            if self._popen.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {log[-3000:]}")
            lines = [line for line in log.splitlines() if line.startswith("ready: ")]
            return lines[-1].removeprefix("ready: ") if lines else None

        return str(until(look, f"{self.name} to be ready"))

    def terminate(self) -> None:
        self._popen.terminate()

    def wait_ended(self, patience: float) -> None:
        """What does not end is killed, with all that it started."""
        try:
            self._popen.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._popen.wait(10)


@dataclass
class Memory:
    """MiB: resident, and the share that is this process's own when pages are shared; ``processes`` of this name."""

    rss: float
    pss: float
    processes: int = 1


class Deployment:
    """Starts with no cell; `add_cell` as many as are wanted."""

    def __init__(
        self,
        directory: Path,
        rabbit: str,
        new_database: Callable[[str], str],
        *,
        cells: int,
        hosts: int,
        computes: int | None = None,
        options: Mapping[str, Mapping[str, object]],
        habits: Mapping[str, float] = {},
    ) -> None:
        """``cells`` and ``hosts`` (per cell): as many as there will be at most. ``computes``: so many of a cell's hosts have a
        compute service, the others are records; None: all. ``habits``: of the guests of flavor `MIXED`."""
        self.directory, self._rabbit, self._database = directory, rabbit, new_database
        self._options = {**OPTIONS, **options}
        specs = {f"simulated:{name}": str(value) for name, value in habits.items()}
        self._mixed = Flavor(
            MIXED, MIXED, vcpus=1, memory_mb=256, root_gb=max(1, ceil(habits.get("data", 0.0))), extra_specs=specs
        )
        self.planned = {f"cell{n}": [f"cell{n}-host{h}" for h in range(1, hosts + 1)] for n in range(1, cells + 1)}
        #: of each cell, the hosts that have a compute service
        self.computes = {name: names[:computes] for name, names in self.planned.items()}
        self.cells: dict[str, seed.Cell] = {}
        self.processes: dict[str, Launched] = {}
        api, placement = free_ports(2)
        self.api_address, self._placement_address = f"127.0.0.1:{api}", f"127.0.0.1:{placement}"

    def start(self) -> None:
        """All but what is of a cell."""
        cloud_hosts = [part for hosts in self.computes.values() for host in hosts for part in ("--host", host)]
        self._launch(
            "devcloud",
            *self._role("devcloud", "--state-dir", str(self.directory), "--port", "0", *cloud_hosts),
            *("--compute-url", f"http://{self.api_address}/v2.1"),
        )
        self._start_placement()
        self.processes["devcloud"].wait_ready()
        self._write("databases", {"api_database": {"connection": self._database("api")}})
        self.api_database = Database(self._database("api"), "the API")
        self._manage("db", "sync", "--cell0", self._database("cell0"))
        for flavor in (SMALL, *GENERATIONS, self._mixed):
            flavors.create(self.api_database, flavor)
        self._aggregates = [aggregates.create(self.api_database, f"gen{n}", {"gen": str(n)}).id for n in (1, 2)]
        common = {group: dict(options) for group, options in self._options.items()}
        common["DEFAULT"]["state_path"] = self.directory
        common["placement"] = {
            "auth_type": "admin_token",
            "endpoint": f"http://{self._placement_address}",
            "token": "admin",
        }
        self._write("common", common)
        for name, more in (
            ("api", {}),
            ("scheduler", {}),
            *((f"super{n}", {"conductor": {"role": "super"}}) for n in range(1, max(SUPER_CONDUCTORS) + 1)),
        ):
            self._write(name, {"DEFAULT": {"host": name, "transport_url": f"{self._rabbit}/cloud"}, **more})
        self._make_image_and_network()

    def _start_placement(self) -> None:
        folder = self.directory / "placement"
        folder.mkdir()
        url = self._database("placement")
        self.placement = sa.create_engine(url)
        settings = ["[placement_database]", f"connection = {url}", "[api]", "auth_strategy = noauth2"]
        (folder / "placement.conf").write_text("\n".join(settings) + "\n")
        (folder / "policy.yaml").write_text("{}\n")
        environment = {"OS_PLACEMENT_CONFIG_DIR": str(folder)}
        subprocess.run(
            [BIN / "placement-manage", "--config-dir", folder, "db", "sync"],
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
        command = [str(BIN / "gunicorn"), "--workers=2", "--threads=8", f"--bind={self._placement_address}"]
        self.processes["placement"] = Launched(
            self.directory, "placement", [*command, "placement.wsgi.api:application"], environment
        )
        until(lambda: _answers(f"http://{self._placement_address}/"), "Placement to answer")
        # The first request that needs them makes Placement write its classes and traits.
        admin = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
        for path in ("traits", "resource_classes"):
            requests.get(f"http://{self._placement_address}/{path}", headers=admin, timeout=60).raise_for_status()

    def start_services(self) -> None:
        """API, one super conductor, scheduler."""
        self.start_super_conductor(1)
        self._launch("scheduler", *self._role("scheduler", *self._files("scheduler")))
        self._launch("api", *self._role("api", "--bind", self.api_address, *self._files("api")))
        for name in ("super1", "scheduler", "api"):
            self.processes[name].wait_ready()
        until(lambda: _answers(f"http://{self.api_address}/healthcheck"), "the API to answer")

    def restart_scheduler(self) -> None:
        self.stop_process("scheduler")
        self._launch("scheduler", *self._role("scheduler", *self._files("scheduler")))
        self.processes["scheduler"].wait_ready()

    def start_super_conductor(self, number: int) -> None:
        name = f"super{number}"
        self._launch(name, *self._role("conductor", *self._files(name)))
        self.processes[name].wait_ready()

    def stop_process(self, name: str) -> None:
        process = self.processes.pop(name)
        process.terminate()
        process.wait_ended(PATIENCE)

    def add_cell(self) -> seed.Cell:
        """The next cell, with its hosts; `start_cells` makes it work."""
        name = next(name for name in self.planned if name not in self.cells)
        url = self._database(name)
        made = self._manage(
            *("cell", "create", "--name", name, "--transport-url", f"{self._rabbit}/{name}"),
            *("--database-connection", url),
        )
        nodes = {host: str(uuids.uuid4()) for host in self.planned[name]}
        cell = seed.Cell(name, made.split()[-1], Database(url, name), nodes)
        self.cells[name] = cell
        aggregate_id = self._aggregates[(len(self.cells) + 1) % 2]
        seed.make_hosts(self.api_database, self.placement, cell, self.directory, aggregate_id, self.computes[name])
        own = {"DEFAULT": {"host": f"conductor-{name}", "transport_url": f"{self._rabbit}/{name}"}}
        more = {"conductor": {"role": "cell"}, "database": {"connection": url}}
        self._write(f"conductor-{name}", {**own, **more})
        return cell

    def start_cells(self) -> None:
        """Conductors and hosts of the cells that have none yet; hosts in at most two processes."""
        new = [name for name in self.cells if f"conductor-{name}" not in self.processes]
        for name in new:
            files = [self._file("common"), self._file(f"conductor-{name}")]
            self._launch(f"conductor-{name}", *self._role("conductor", *files))
        for group in (new[::2], new[1::2]):
            if group:
                parts = [
                    part
                    for name in group
                    for part in ("--cell", name, f"{self._rabbit}/{name}", ",".join(self.computes[name]))
                ]
                files = [f"--config-file={self.directory / 'services.conf'}", self._file("common")]
                self._launch(f"hosts-{group[0]}", sys.executable, "-m", "benchmarks.scale.hosts", *files, *parts)
        for name, process in self.processes.items():
            if name.startswith(("hosts-", "conductor-")):
                process.wait_ready()

    def _make_image_and_network(self) -> None:
        self.member = self.connect("causeway")
        image = self.member.image.create_image(
            name="image", disk_format="raw", container_format="bare", data=b"disk".ljust(4096, b"\0")
        )
        network = self.member.network.create_network(name="network")
        self.member.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.0.0.0/16")
        self.image_id, self.network_id = image.id, network.id
        access = self.member.session
        self.owner = seed.Owner(str(access.get_user_id()), str(access.get_project_id()))

    def connect(self, cloud: str) -> Any:
        import openstack

        loader = openstack.config.OpenStackConfig(
            config_files=[str(self.directory / "clouds.yaml")], vendor_files=[], secure_files=[], load_envvars=False
        )
        return openstack.connection.Connection(config=loader.get_one(cloud))

    def memory(self) -> dict[str, Memory]:
        """Of each role; the workers of a role with several processes are counted together."""
        return {name: _memory_of(process.pid) for name, process in self.processes.items()}

    def cpu(self) -> dict[str, float]:
        """Seconds of CPU that each role has taken so far; all conductors of cells are one here, and all hosts."""
        spent: dict[str, float] = {}
        ours = {process.pid: name for name, process in self.processes.items()}
        for pid in children(os.getpid()):
            name = ours.get(pid) or _server_of(pid)
            if name is not None:
                kind = kind_of(name)
                spent[kind] = spent.get(kind, 0.0) + sum(_cpu_of(one) for one in with_children(pid))
        return spent

    def connections(self) -> int:
        """To PostgreSQL."""
        with self.placement.connect() as connection:
            return int(connection.execute(sa.text("SELECT count(*) FROM pg_stat_activity")).scalar_one())

    def stop(self, patience: float = 60.0) -> None:
        """What others call ends last; what has not ended after ``patience`` seconds is killed."""
        for prefixes in (("api",), ("hosts-", "super", "conductor-", "scheduler"), ("placement", "devcloud")):
            group = [self.processes.pop(name) for name in list(self.processes) if name.startswith(prefixes)]
            for process in group:
                process.terminate()
            for process in group:
                process.wait_ended(patience)
        for cell in self.cells.values():
            cell.database.close()
        for made in ("api_database", "placement"):
            one = getattr(self, made, None)
            if isinstance(one, Database):
                one.close()
            elif one is not None:
                one.dispose()

    def _launch(self, name: str, *command: str) -> None:
        self.processes[name] = Launched(self.directory, name, command)

    def _role(self, *arguments: str) -> list[str]:
        return [str(BIN / "causeway"), *arguments]

    def _files(self, name: str) -> list[str]:
        return [f"--config-file={self.directory / 'services.conf'}", *map(self._file, ("common", "databases", name))]

    def _file(self, name: str) -> str:
        return f"--config-file={self.directory / name}.conf"

    def _manage(self, *arguments: str) -> str:
        command = [str(BIN / "causeway"), "manage", *arguments, self._file("databases")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def _write(self, name: str, groups: Mapping[str, Mapping[str, object]]) -> None:
        lines = []
        for group, options in groups.items():
            lines += [f"[{group}]", *(f"{option} = {value}" for option, value in options.items())]
        (self.directory / f"{name}.conf").write_text("\n".join(lines) + "\n")


def kind_of(name: str) -> str:
    """What processes of the same sort are called together."""
    for pattern, kind in (
        ("conductor-", "conductors of cells"),
        ("hosts-", "simulated hosts"),
        ("super", SUPER),
    ):
        if name.startswith(pattern):
            return kind
    return name


def until(look: Callable[[], Any], what: str) -> Any:
    """What ``look`` sees as soon as it is something."""
    end = time.monotonic() + PATIENCE
    while not (seen := look()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited too long for {what}")
        time.sleep(0.1)
    return seen


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=10).status_code < 500
    except requests.RequestException:
        return False


def _memory_of(pid: int) -> Memory:
    whole = Memory(0, 0, 0)
    for one in with_children(pid):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()[1:]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines if ":" in line}
        whole = Memory(whole.rss + sizes.get("Rss", 0), whole.pss + sizes.get("Pss", 0), whole.processes + 1)
    return whole


def _server_of(pid: int) -> str | None:
    with suppress(FileNotFoundError, ProcessLookupError):
        command = Path(f"/proc/{pid}/cmdline").read_text()
        return "PostgreSQL" if "postgres" in command else "RabbitMQ" if "rabbitmq" in command else None
    return None


def _cpu_of(pid: int) -> float:
    """Of a process, and of those of its children that have ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0
