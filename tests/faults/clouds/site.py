"""A cloud to break: in this process, or `causeway up` in a child process that can be killed and started again.

Everything is seen from outside: through the REST APIs as users see it, and in the files of the state directory.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec
import openstack
import sqlalchemy as sa
import yaml

from causeway import decoding
from causeway.embedded.cloud import EmbeddedCloud
from causeway.embedded.settings import StateDir
from causeway.faults import injector
from causeway.model.states import PowerState
from causeway.roles.compute import make_compute
from causeway.roles.conductor import make_conductor
from causeway.store.cell_tables import Services
from causeway.store.cells import Cells
from causeway.store.database import Database
from causeway.virt.simulated.guest import Guest
from tests.faults.clouds.guests import Guests, SimulatedGuests

PATIENCE = 40.0
# A cloud that starts is given more: nothing is measured by it.
START_SECONDS = 180.0
ROOT = Path(__file__).parents[3]
# A card with functions for as many servers as a batch has.
CARD = ["0000:81:00.0=c0de:0001/pf:ens1f0"] + [
    f"0000:81:{slot:02x}.{function}=c0de:0002/vf:0000:81:00.0" for slot in range(2, 18) for function in range(8)
]
# Short leases and pauses: what takes a minute in a cloud takes a second here.
OPTIONS: dict[str, dict[str, Any]] = {
    "DEFAULT": {
        "report_interval": 60,
        "service_down_time": 600,
        "vif_plugging_timeout": 2,
        # Who asks a host that is dead learns of it before a test has lost its patience.
        "rpc_response_timeout": 10,
        "allow_resize_to_same_host": True,
        # One that is held at a point must not keep others from theirs.
        "max_concurrent_live_migrations": 0,
    },
    "fault_injection": {"enabled": True},
    # From the second host to the second host guests go live across cells, elsewhere near-live.
    "simulated": {
        "live_networks": "cell1-host1:cell1,cell2-host1:cell2,cell1-host2:one,cell2-host2:one",
        "pci_devices": CARD,
    },
    # For ports of networks without a physical one.
    "pci": {"device_spec": ['{"vendor_id": "c0de", "physical_network": null}']},
    "drains": {"interval": 0.3, "retry_pause": 0.3},
    "quota": {"instances": -1, "cores": -1, "ram": -1},
    # What passes does so within the time of a restart; what does not is abandoned soon.
    "moves": {
        # As many as a conductor has by default: each of a batch may stand at a point of its own.
        "workers": 32,
        "lease": 1.5,
        "first_pause": 0.02,
        "stuck_retry_interval": 0.3,
        "attempts": 3,
        "patience": 10.0,
        "patience_while_off": 10.0,
    },
}
# name -> property of the hosts that it is tied to, and what it has.
FLAVORS: dict[str, tuple[dict[str, str], dict[str, int]]] = {
    "gen1.large": ({"gen": "1"}, {"vcpus": 2, "ram": 192, "disk": 2}),
    "gen1.disks": ({"gen": "1"}, {"vcpus": 1, "ram": 128, "disk": 1, "ephemeral": 1, "swap": 64}),
    "gen2.disks": ({"gen": "2"}, {"vcpus": 2, "ram": 192, "disk": 2, "ephemeral": 2, "swap": 128}),
    "numa.gen1.small": ({"gen": "1"}, {"vcpus": 1, "ram": 128, "disk": 1}),
    "numa.gen2.small": ({"gen": "2"}, {"vcpus": 2, "ram": 192, "disk": 2}),
    "host1.small": ({"only": "cell1-host1"}, {"vcpus": 1, "ram": 128, "disk": 1}),
    "host1.medium": ({"only": "cell1-host1"}, {"vcpus": 2, "ram": 192, "disk": 2}),
    "host2.medium": ({"only": "cell1-host2"}, {"vcpus": 2, "ram": 192, "disk": 2}),
}
# Servers of these have a NUMA topology, and a port that is a device of their host: both are claimed.
WITH_NUMA = ("numa.gen1.small", "numa.gen2.small")
# Servers of these have a TPM, whose state is to go with them.
WITH_TPM = ("gen1.disks", "gen2.disks")


def as_text(value: Any) -> str:
    """An option's value in a file; of a list that has one value for each line there may be one."""
    return ",".join(value) if isinstance(value, list) else str(value)


class Site:
    """``directory`` is the state directory. Use it as a context manager."""

    driver = "simulated"
    # More options of openstacksdk.
    connect_options: Mapping[str, Any] = {}

    def __init__(self, directory: Path, *, hosts_per_cell: int = 2) -> None:
        self.state = StateDir(directory)
        # By group; to be changed before the cloud is started.
        self.options = {group: dict(options) for group, options in OPTIONS.items()}
        self.hosts_per_cell = hosts_per_cell
        # Host -> the store of its guests' disks.
        self.stores: dict[str, str] = {}
        self.hosts: list[str] = [f"cell{cell}-host{host}" for cell in (1, 2) for host in range(1, hosts_per_cell + 1)]
        self.guests: Guests = SimulatedGuests({host: self.state.host(host) for host in self.hosts})

    def share_storage(self, how: str = "one") -> Self:
        """All hosts keep their guests' disks in one store, or in one ``per cell``. To be called before the cloud is started."""
        self.stores = {host: f"pool-of-{host[:5]}" if how == "per cell" else "pool" for host in self.hosts}
        self.options["simulated"]["shared_stores"] = ",".join(f"{host}:{name}" for host, name in self.stores.items())
        return self

    def __enter__(self) -> Self:
        # Users are threads, which read records as the services do.
        decoding.prepare_decoders()
        self.start()
        self.connect()
        self.make_flavors()
        for store in set(self.stores.values()):
            # The image service keeps its images there, too.
            kept = self.state.path / "stores" / store / "images"
            if not kept.is_symlink():
                kept.symlink_to(self.state.devcloud / "images")
        self.image_id: str = self.member.image.find_image("demo").id
        self.network_id: str = self.member.network.find_network("demo-net").id
        self.api = Database(self.api_url, "the API")
        self.cells = Cells(self.api)
        self.cell_uuids = {cell.name: cell.uuid for cell in self.cells.mappings()}
        return self

    def __exit__(self, *_: object) -> None:
        self.cells.close()
        self.api.close()
        self.stop()

    @property
    def api_url(self) -> str:
        """Of the API database."""
        return self.state.database("api")

    def root_volume(self, gigabytes: int = 1) -> dict[str, Any]:
        """The block device of a server that boots from a volume of its own, made of the image."""
        return {
            "boot_index": 0,
            "source_type": "image",
            "destination_type": "volume",
            "uuid": self.image_id,
            "volume_size": gigabytes,
            "delete_on_termination": True,
        }

    def make_flavors(self) -> None:
        """Flavors of tests, beside those that a new cloud has; some are tied to one host."""
        for host in ("cell1-host1", "cell1-host2")[: self.hosts_per_cell]:
            if self.admin.compute.find_aggregate(host) is None:
                made = self.admin.compute.create_aggregate(name=host)
                self.admin.compute.set_aggregate_metadata(made, {"only": host})
                self.admin.compute.add_host_to_aggregate(made, host)
        for name, (tied, fields) in FLAVORS.items():
            if self.admin.compute.find_flavor(name) is None:
                made = self.admin.compute.create_flavor(name=name, id=name, **fields)
                specs = {f"aggregate_instance_extra_specs:{key}": value for key, value in tied.items()}
                if name in WITH_NUMA:
                    specs["hw:numa_nodes"] = "1"
                if name in WITH_TPM:
                    specs["hw:tpm_version"] = "2.0"
                self.admin.compute.create_flavor_extra_specs(made, specs)

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def connect(self) -> None:
        """Users; again after a restart, which may have another port."""
        clouds = yaml.safe_load(self.state.clouds.read_text())["clouds"]
        self.member, self.admin = (
            openstack.connect(
                auth={**clouds[cloud]["auth"], "project_name": clouds["causeway"]["auth"]["project_name"]},
                region_name="RegionOne",
                compute_api_version="2",
                compute_default_microversion="2.96",
                block_storage_default_microversion="3.70",
                load_yaml_config=False,
                load_envvars=False,
                **self.connect_options,
            )
            for cloud in ("causeway", "causeway-admin")
        )

    def cell(self, name: str) -> Database:
        return self.cells.database(self.cell_uuids[name])

    # hosts that are dead for a while: the machine is off, and its operator says so (``forced_down``)

    def kill_host(self, host: str) -> None:
        raise NotImplementedError

    def revive_host(self, host: str) -> None:
        """It is on again, and its operator enables it."""
        raise NotImplementedError

    def guests_on(self, host: str) -> list[Path]:
        return sorted((self.state.host(host) / "guests").glob("*.json"))

    def switch_off(self, host: str) -> set[str]:
        """Switches off the guests of a machine that is off; returns their uuids.

        What was on its way there does not arrive; nor does what it sent: a hypervisor ends what comes from a peer that is dead.
        """
        for path in (self.state.host(host) / "incoming").glob("*.json"):
            path.unlink()
        found = set()
        for path in self.guests_on(host):
            guest = msgspec.json.decode(path.read_bytes(), type=Guest)
            guest.power_state = PowerState.SHUTDOWN
            # Users look at it meanwhile.
            new = path.with_suffix(".new")
            new.write_bytes(msgspec.json.encode(guest))
            new.replace(path)
            found.add(guest.uuid)
            for other in self.hosts:
                (self.state.host(other) / "incoming" / path.name).unlink(missing_ok=True)
        return found

    def force_down(self, host: str, down: bool) -> None:
        (service,) = self.admin.compute.services(host=host, binary="nova-compute")
        self.admin.compute.update_service_forced_down(service, forced=down)

    # faults

    @property
    def faults_file(self) -> Path:
        return self.state.path / "faults.yaml"

    @property
    def hits_file(self) -> Path:
        return self.state.path / "faults.yaml.hits"

    def arm(self, rules: dict[str, Any]) -> None:
        """From now on these faults, and none of those before."""
        self.hits_file.unlink(missing_ok=True)
        self.arm_also(rules)

    def arm_also(self, rules: dict[str, Any]) -> None:
        """From now on these faults; what was taken of them already counts."""
        new = self.faults_file.with_suffix(".new")
        new.write_text(yaml.safe_dump(rules))
        new.replace(self.faults_file)

    def disarm(self) -> None:
        self.faults_file.unlink(missing_ok=True)

    def hits(self) -> list[dict[str, Any]]:
        if not self.hits_file.exists():
            return []
        # A line without its end is just being written.
        lines = self.hits_file.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]


class LocalSite(Site):
    """In this process, with as many conductors as wanted."""

    def __init__(self, directory: Path, *, conductors: int = 1) -> None:
        super().__init__(directory)
        self._conductors = conductors
        self._double_starts: list[str] = []

    def start(self) -> None:
        self.cloud = EmbeddedCloud(
            self.state.path, port=0, cells=2, hosts_per_cell=self.hosts_per_cell, overrides=self.options
        )
        self.cloud.start()
        self._others = []
        for number in range(2, self._conductors + 1):
            cloud = self.cloud
            other = make_conductor(cloud.around, cloud.api_database, cloud.cells, f"conductor{number}", of_cells=[])
            other.start()
            other.recover()
            self._others.append(other)

    def stop(self) -> None:
        for other in self._others:
            other.stop()
        self.cloud.stop()

    def kill_host(self, host: str) -> None:
        self._double_starts += self.cloud.computes[host].host.driver.double_starts  # type: ignore[attr-defined]
        self.cloud.computes[host].stop()
        self.switch_off(host)
        self.force_down(host, True)

    def revive_host(self, host: str) -> None:
        cell = next(cell for cell in self.cells.mappings(cell0=False) if host.startswith(cell.name))
        cloud = self.cloud
        compute = make_compute(
            cloud.around_of_hosts, host, cloud.hosts.driver(host), cell.transport_url, self.state.host(host)
        )
        compute.start()
        cloud.computes[host] = compute
        cloud._cleanup.callback(compute.stop)
        self.force_down(host, False)

    def is_idle(self) -> bool:
        """Whether nobody hangs, and no conductor works on anything."""
        conductors = [self.cloud.conductor, *self._others]
        hanging = injector._active is not None and injector._active._hanging
        return not hanging and not any(conductor._keeper.is_busy for conductor in conductors)

    def double_starts(self) -> list[str]:
        drivers = [compute.host.driver for compute in self.cloud.computes.values()]
        return self._double_starts + [uuid for driver in drivers for uuid in driver.double_starts]  # type: ignore[attr-defined]


class ChildSite(Site):
    """In a process of its own."""

    process: subprocess.Popen[str]
    # The host whose machine is off.
    dead: str | None = None

    def start(self) -> None:
        self.state.path.mkdir(parents=True, exist_ok=True)
        config = self.state.path / "causeway.conf"
        config.write_text(
            "\n".join(
                line
                for group, options in self.options.items()
                for line in (f"[{group}]", *(f"{name} = {as_text(value)}" for name, value in options.items()))
            )
        )
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            self._program(),
            "up",
            "--state-dir",
            str(self.state.path),
        ]
        command += [
            "--driver",
            self.driver,
            "--port",
            "0",
            "--hosts-per-cell",
            str(self.hosts_per_cell),
            "--config-file",
            str(config),
        ]
        self.errors = (self.state.path / "stderr").open("a")
        self.process = subprocess.Popen(self._run_as(command), stdout=subprocess.PIPE, stderr=self.errors, text=True)
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline() if ready else "nothing in time"
        if not line.startswith("ready"):
            self.process.kill()
            raise AssertionError(f"the cloud did not start: {line} {(self.state.path / 'stderr').read_text()[-2000:]}")

    def _program(self) -> str:
        program = "from causeway.cli.main import cli; cli()"
        if self.dead is None:
            return program
        leave_out = f"from tests.faults.clouds.without_host import leave_out; leave_out({self.dead!r})"
        return f"import sys; sys.path.insert(0, {str(ROOT)!r}); {leave_out}; {program}"

    def _run_as(self, command: list[str]) -> list[str]:
        return command

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
        self.errors.close()

    def kill(self) -> None:
        """As the power cord does."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def restart(self) -> None:
        self.start()
        self.connect()

    def kill_host(self, host: str) -> None:
        self.kill()
        self.note_death(host)
        self.restart()

    def revive_host(self, host: str) -> None:
        self.kill()
        self.note_return(host)
        self.restart()

    # While nothing runs: what is on its way to a machine that is off goes with the process.

    def note_death(self, host: str) -> set[str]:
        """Whose guests are off."""
        self.dead = host
        self._note_forced_down(host, True)
        return self.switch_off(host)

    def note_return(self, host: str) -> None:
        self.dead = None
        self._note_forced_down(host, False)

    def _note_forced_down(self, host: str, down: bool) -> None:
        table: sa.Table = Services.__table__  # type: ignore[assignment]
        with self.cell(host.partition("-")[0]).write() as connection:
            connection.execute(table.update().where(table.c.host == host).values(forced_down=down))

    def double_starts(self) -> list[str]:
        log = self.state.path / "causeway.log"
        marks = [line for line in log.read_text().splitlines() if "while another host runs it" in line]
        return [line.split("Guest ")[1].split()[0] for line in marks]


def until(look: Callable[[], Any], good: Callable[[Any], bool], patience: float = PATIENCE) -> Any:
    """What ``look`` sees when it is good, or when patience is at its end."""
    end = time.monotonic() + patience
    while True:
        seen = look()
        if good(seen) or time.monotonic() > end:
            return seen
        time.sleep(0.02)


def chunks(items: list[Any], size: int) -> Iterable[list[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
