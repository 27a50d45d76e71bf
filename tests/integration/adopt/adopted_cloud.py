"""A Causeway beside the Nova whose cloud it takes over: the same services around, the same hosts; own databases and queues.

Its processes read Nova's files, and behind them what must differ.
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
from tests.functional.processes.own_process import until
from tests.integration.adopt import outside
from tests.integration.adopt.commands import causeway
from tests.integration.adopt.nova import MICROVERSION
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.nova_configuration import STATE_PATH
from tests.integration.real_services.guests import OPTIONS, GuestCloud

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
            options={**OPTIONS, "oslo_policy": {"policy_file": directory / "policy.yaml"}},
            new_database=lambda name: nova_cloud.new_database(f"{directory.name.replace('-', '_')}_{name}"),
        )
        self.services = nova_cloud.services

    def start(self) -> None:
        """Everything, with Nova's records, when this returns; computes only look."""
        policy = self.directory / "policy.yaml"
        policy.write_text(POLICY)
        self.services.write_client_files(self.directory, policy)
        self._make_databases()
        self._configure()
        self.import_records()
        self._start_control_plane()
        for host in self.hosts:
            self.start_role("compute", host)
        for process in self.processes.values():
            process.wait_ready()
        until(self._healthy, bool, "the API to answer")
        self.member, self.admin = self.connection("causeway"), self.connection("causeway-admin")

    def import_records(self) -> dict[str, Any]:
        """What `causeway adopt import` says."""
        said = self._adopt("import", "--json", "--nova-config", str(self._nova.config_of("nova")))
        assert said.returncode in (0, LEFT_OUT), said.stdout + said.stderr
        report: dict[str, Any] = json.loads(said.stdout)
        return report

    def connection(self, cloud: str) -> Any:
        """The catalog still has Nova's API."""
        made = super().connection(cloud)
        made.compute.endpoint_override = f"{self.api_url}/v2.1"
        made.compute.default_microversion = MICROVERSION
        return made

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
        said = self._adopt("host", "--only-look", "--json", *hosts)
        assert said.returncode in (0, 1), said.stdout + said.stderr
        return [finding for host in json.loads(said.stdout) for finding in host["findings"]]

    def take(self, *hosts: str) -> None:
        """They are ours when this returns, with Nova's newest records."""
        for host in hosts:
            self._nova.stop_compute(host)
        self.import_records()
        said = self._adopt("host", *hosts)
        assert said.returncode == 0, said.stdout + said.stderr

    def hand_back(self, *hosts: str) -> dict[str, Any]:
        """Their computes are Nova's again when this returns what `causeway adopt hand-back` says."""
        nova = ("--nova-config", str(self._nova.config_of("nova")))
        said = self._adopt("hand-back", "--json", *nova, *hosts)
        assert said.returncode == 0, said.stdout + said.stderr
        for host in hosts:
            self._nova.start_compute(host)
        report: dict[str, Any] = json.loads(said.stdout)
        return report

    def finish(self, *words: str) -> subprocess.CompletedProcess[str]:
        nova = ("--nova-config", str(self._nova.config_of("nova")))
        return self._adopt("finish", *nova, "--api-url", self.api_url, *words)

    def _adopt(self, *words: str) -> subprocess.CompletedProcess[str]:
        return causeway("adopt", *words, *(f"--config-file={file}" for file in self.files_of(CONDUCTORS[0])))

    # configuration

    def files_of(self, name: str) -> list[Path]:
        nova = self._nova.config_of(f"compute-{name}" if name in self.hosts else "nova")
        own = [nova, self.directory / "common.conf", self.directory / f"{name}.conf"]
        return own if name in self.hosts else [*own, self.directory / "databases.conf"]

    def hypervisor(self, _host: str) -> dict[str, dict[str, str]]:
        """What `causeway adopt options` says that has to be added, and that the host was Nova's."""
        return {
            "adopt": {"nova_state_path": str(STATE_PATH), "nova_config_dirs": str(self._nova.config_of("nova").parent)},
            "DEFAULT": {"instances_path": str(STATE_PATH / "instances")},
            "libvirt": {"nfs_mount_point_base": str(STATE_PATH / "mnt")},
            "metrics": {"enabled": "false"},
        }

    def _cell_options(self, name: str) -> Sequence[str]:
        return ("--uuid", self._cell_uuids[name])

    @cached_property
    def _cell_uuids(self) -> dict[str, str]:
        return {row["name"]: row["uuid"] for row in outside.rows(self._nova.databases["api"], "cell_mappings")}


@contextmanager
def adopted_cloud(nova_cloud: NovaCloud, name: str = "causeway") -> Iterator[AdoptedCloud]:
    """Started; all hosts are Nova's at first, and in the end."""
    directory = nova_cloud.directory / name
    directory.mkdir()
    cloud = AdoptedCloud(nova_cloud, directory)
    try:
        cloud.start()
        yield cloud
    finally:
        taken = [each for each in cloud.hosts if each in cloud.processes and not nova_cloud.nova.runs_compute(each)]
        try:
            if taken:
                cloud.hand_back(*taken)
        finally:
            cloud.kill()
            nova_cloud.nova.regain_hosts()
