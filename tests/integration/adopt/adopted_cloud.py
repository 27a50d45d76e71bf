"""A Causeway beside the Nova whose cloud it takes over: the same services around, the same hosts; own databases and queues.

Its hosts read what `causeway adopt host-config` makes of Nova's files; its other processes read Nova's files, and behind them
what must differ.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from causeway.embedded.settings import POLICY
from tests.functional.processes.deployment import CONDUCTORS
from tests.functional.processes.own_process import Process, until
from tests.integration.adopt import outside
from tests.integration.adopt.commands import causeway
from tests.integration.adopt.nova import MICROVERSION
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.real_services.guests import OPTIONS, GuestCloud

# What `causeway adopt host-config` writes.
CONFIG, LOCAL = "causeway-compute.conf", "causeway-compute.local.conf"
# Seconds until one of Neutron's processes has ended.
PATIENCE = 30.0
# Of an import in which something was left out.
LEFT_OUT = 2


class AdoptedCloud(GuestCloud):
    """All hosts are Nova's at first; `take` and `hand_back` change that, one by one."""

    def __init__(self, nova_cloud: NovaCloud, directory: Path) -> None:
        """``directory``: short, for sockets, and on the file system of the guests."""
        self._nova = nova_cloud.nova
        super().__init__(
            directory,
            nova_cloud.broker.url,
            nova_cloud.machines,
            cells=self._nova.cells,
            # Nova's folder of policies may have the one that freezes it.
            options={
                **OPTIONS,
                "oslo_policy": {"policy_file": directory / "policy.yaml", "policy_dirs": directory / "policy.d"},
            },
            new_database=lambda name: nova_cloud.new_database(f"{directory.name.replace('-', '_')}_{name}"),
        )
        self.services = nova_cloud.services

    def start(self) -> None:
        """Everything, with Nova's records, when this returns; computes only look."""
        self.make_databases()
        self.configure_hosts()
        self.import_records()
        self.start_control_plane()
        for host in self.hosts:
            self.start_role("compute", host)
        for host in self.hosts:
            self.processes[host].wait_ready()

    def configure(self) -> None:
        """The files of all that runs on no host, and those that commands ask for."""
        policy = self.directory / "policy.yaml"
        policy.write_text(POLICY)
        policy.with_name("policy.d").mkdir()
        self.services.write_client_files(self.directory, policy)
        self._name_databases()
        self._configure()
        for cell in self._cells:
            self.queue_file(cell).write_text(f"{self.rabbit}/{cell}\n")

    def make_databases(self) -> None:
        self._make_databases()

    def configure_hosts(self) -> None:
        for host, cell in self.hosts.items():
            words = ["--nova-config", self._nova.config_of(f"compute-{host}"), "--state-path", self.directory]
            words += ["--transport-url-file", self.queue_file(cell), "--output", self.etc(host)]
            said = causeway("adopt", "host-config", *map(str, words), prefix=self.prefix(host))
            assert said.returncode == 0, said.stdout + said.stderr
            self.give_account(host)
            with (self.etc(host) / LOCAL).open("a") as file:
                file.write("[fault_injection]\nenabled = true\n")

    def give_account(self, host: str) -> None:
        """Its own, which is no administrator's, instead of Nova's."""
        with (self.etc(host) / LOCAL).open("a") as file:
            file.write((self.directory / "services-compute.conf").read_text())

    def start_control_plane(self) -> None:
        """All that runs on no host; the databases are filled."""
        self._start_control_plane()
        for process in self.processes.values():
            process.wait_ready()
        until(self._healthy, bool, "the API to answer")
        self.member, self.admin = self.connection("causeway"), self.connection("causeway-admin")

    def import_records(self) -> dict[str, Any]:
        """What `causeway adopt import` says."""
        said = self.adopt("import", "--json", *self.of_nova)
        assert said.returncode in (0, LEFT_OUT), said.stdout + said.stderr
        report: dict[str, Any] = json.loads(said.stdout)
        return report

    def connection(self, cloud: str) -> Any:
        """The catalog still has Nova's API."""
        made = super().connection(cloud)
        made.compute.endpoint_override = f"{self.api_url}/v2.1"
        made.compute.default_microversion = MICROVERSION
        return made

    def ports(self, uuid: str) -> dict[str, tuple[Any, ...]]:
        """id -> all that a guest and its neighbours know of a server's port, and whether it is up."""
        return {
            port.id: (port.mac_address, tuple(each["ip_address"] for each in port.fixed_ips), port.status)
            for port in self.admin.network.ports(device_id=uuid)
        }

    def point_catalog(self, url: str) -> None:
        """The catalog has this compute API from now on, and Neutron reports there.

        It has the catalog from its token, for as long as that lives, so it is started anew. The reports matter: a target waits
        for one before a guest arrives live, where agents plug ports.
        """
        with self.services.connection(project="admin") as cloud:
            (compute,) = cloud.identity.services(type="compute")
            for endpoint in cloud.identity.endpoints(service_id=compute.id):
                cloud.identity.update_endpoint(endpoint, url=url)
        for name in ("neutron-rpc-server", "neutron-periodic-workers"):
            self.services.machine.end(name, PATIENCE)
            self.services.start_worker(name)
        self.services.machine.end("neutron", PATIENCE)
        self.services.start_api("neutron")
        self.services.await_api("neutron")

    # hosts

    def look(self, *hosts: str) -> list[dict[str, Any]]:
        """What differs on these hosts from the records, whoever owns them."""
        said = self.adopt("host", "--only-look", "--json", *hosts)
        assert said.returncode in (0, 1), said.stdout + said.stderr
        return [finding for host in json.loads(said.stdout) for finding in host["findings"]]

    def take(self, *hosts: str) -> None:
        """They are ours when this returns, with Nova's newest records."""
        self._nova.stop_compute(*hosts)
        self.import_records()
        said = self.adopt("host", *hosts)
        assert said.returncode == 0, said.stdout + said.stderr

    def hand_back(self, *hosts: str) -> dict[str, Any]:
        """Their computes are Nova's again when this returns what `causeway adopt hand-back` says."""
        said = self.adopt("hand-back", "--json", *self.of_nova, *hosts)
        assert said.returncode == 0, said.stdout + said.stderr
        self._nova.start_compute(*hosts)
        report: dict[str, Any] = json.loads(said.stdout)
        return report

    def finish(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.adopt("finish", *self.of_nova, "--api-url", self.api_url, *words)

    # commands

    @property
    def of_nova(self) -> tuple[str, str]:
        """The option of commands that read Nova's databases."""
        return "--nova-config", str(self._nova.config_of("nova"))

    def adopt(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What `causeway adopt` says."""
        return causeway("adopt", *words, *self._own_files())

    def begin(self, *words: str) -> Process:
        """`causeway adopt`, which runs when this returns."""
        command, *others = words
        return Process(self.directory, f"adopt-{command}", "adopt", command, *self._own_files(), *others)

    def _own_files(self) -> list[str]:
        return [f"--config-file={file}" for file in self.files_of(CONDUCTORS[0])]

    # configuration

    def files_of(self, name: str) -> list[Path]:
        if name in self.hosts:
            return [self.etc(name) / CONFIG, self.etc(name) / LOCAL]
        nova = self._nova.config_of("nova")
        return [nova, *(self.directory / f"{file}.conf" for file in ("common", name, "databases"))]

    def etc(self, host: str) -> Path:
        """The host's folder of Causeway's configuration."""
        return self.directory / "etc" / host

    def queue_file(self, cell: str) -> Path:
        """Has the URL of the cell's queue."""
        return self.directory / f"{cell}.queue"

    def _configure_host(self, host: str, cell: str) -> None:
        """Hosts have no files but those of `configure_hosts`."""

    def _cell_options(self, name: str) -> Sequence[str]:
        return ("--uuid", self.cell_uuids[name])

    @cached_property
    def cell_uuids(self) -> dict[str, str]:
        return {row["name"]: row["uuid"] for row in outside.rows(self._nova.databases["api"], "cell_mappings")}


@contextmanager
def new_cloud(nova_cloud: NovaCloud, name: str) -> Iterator[AdoptedCloud]:
    """It has files, but for hosts, and nothing of it runs yet. All hosts are Nova's in the end, and nothing of it runs."""
    directory = nova_cloud.directory / name
    directory.mkdir()
    cloud = AdoptedCloud(nova_cloud, directory)
    cloud.configure()
    try:
        yield cloud
    finally:
        taken = [each for each in cloud.hosts if each in cloud.processes and not nova_cloud.nova.runs_compute(each)]
        try:
            if taken:
                cloud.hand_back(*taken)
        finally:
            cloud.kill()
            nova_cloud.nova.regain_hosts()


@contextmanager
def adopted_cloud(nova_cloud: NovaCloud, name: str = "causeway") -> Iterator[AdoptedCloud]:
    """Started; all hosts are Nova's at first, and in the end."""
    with new_cloud(nova_cloud, name) as cloud:
        cloud.start()
        yield cloud
