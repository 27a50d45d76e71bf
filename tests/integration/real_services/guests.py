"""A deployment with real guests: libvirt, Open vSwitch and Neutron's own agents on each host, beside the real services."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libvirt
import pytest
from platformdirs import user_cache_path

from causeway.embedded.settings import POLICY
from causeway.virt.lab import hosts as lab
from causeway.virt.lab.guest_image import GuestImage, build_guest_image
from tests.functional.processes.deployment import Deployment
from tests.functional.processes.rabbit import own_broker, why_not
from tests.gone_guests import unless_gone
from tests.integration.database_servers import database_server
from tests.integration.real_services import switches
from tests.integration.real_services.machine import VENV
from tests.integration.real_services.machines import Machines
from tests.integration.real_services.services import RealServices
from tests.integration.real_services.switches import Switches
from tests.ports import free_ports

OPTIONS: dict[str, dict[str, Any]] = {
    # Guests are emulated, on a machine that does much else.
    "DEFAULT": {"report_interval": 5, "rpc_response_timeout": 60},
    "moves": {"lease": 10},
    "fault_injection": {"enabled": True},
    "libvirt": {"virt_type": "qemu"},
}


def missing() -> str | None:
    """What keeps this machine from running it, in one sentence; None if nothing does."""
    if not (VENV / "bin/neutron-openvswitch-agent").exists():
        return "the real services are not installed: make integration does that"
    return lab.missing() or switches.missing() or why_not()


class ServicesWithAgents(RealServices):
    """With Neutron's own agents and switches instead of the stand-ins."""

    def __init__(self, directory: Path, machines: Machines, *, queue: str, **options: Any) -> None:
        super().__init__(directory, queue=queue, hosts=machines.addresses, address=machines.address, **options)
        self._names = tuple(machines.addresses)
        self.switches = self._make_switches(machines, queue)

    def _make_switches(self, machines: Machines, queue: str) -> Switches:
        return Switches(machines, self.machine, queue)

    def start(self) -> None:
        super().start()
        for host in self._names:
            self.switches.settle(host)

    def start_agents(self) -> None:
        for host in self._names:
            self.switches.start(host)
            self.agents = self.switches.agent(host)


@dataclass(frozen=True)
class Networking:
    """What Neutron has on the hosts."""

    machines: type[Machines] = Machines
    services: type[ServicesWithAgents] = ServicesWithAgents


class GuestCloud(Deployment):
    """Computes run in their hosts' namespaces."""

    compute_driver = "libvirt"
    services: ServicesWithAgents

    def __init__(self, directory: Path, queue: str, machines: Machines, **options: Any) -> None:
        super().__init__(directory, queue, **options)
        self.machines = machines
        (self._console_port,) = free_ports(1)

    def start(self) -> None:
        super().start()
        self.start_console_proxy(self._console_port)

    def hypervisor(self, host: str) -> dict[str, dict[str, str]]:
        endpoint = self.machines.endpoints[host]
        # The metrics of a host in a namespace of its own are of no use to us.
        return {
            "DEFAULT": {"my_ip": self.machines.addresses[host]},
            "libvirt": {
                "connection_uri": endpoint.uri,
                # Hypervisors talk to one another on a network of their own, and prove who they are.
                "live_migration_inbound_addr": endpoint.address,
                "live_migration_uri": endpoint.control_uri,
                "live_migration_with_native_tls": "true",
            },
            "os_vif_ovs": {"ovsdb_connection": switches.CONNECTION},
            "serial_console": {
                "enabled": "true",
                "base_url": f"ws://127.0.0.1:{self._console_port}/",
                "proxyclient_address": self.machines.addresses[host],
            },
            "metrics": {"enabled": "false"},
        }

    def prefix(self, name: str) -> Sequence[str]:
        if name not in self.hosts:
            return ()
        # Where the host's "mount.nfs" is; our own programs come first.
        path = f"{Path(sys.executable).parent}:{self.services.machine.environment()['PATH']}"
        return [*self.machines.inside(name), "env", f"PATH={path}"]

    @property
    def network(self) -> str:
        return str(self._network)

    def guest_image(self) -> GuestImage:
        """What the servers' images are made of."""
        return build_guest_image(user_cache_path("causeway") / "guest-image")

    def _make_image(self) -> Any:
        image = self.guest_image()
        return self.member.image.create_image(
            name="image", disk_format="qcow2", container_format="bare", filename=str(image.path), wait=True
        )

    def boot_on(self, host: str, **fields: Any) -> Any:
        """As an administrator, who may say where."""
        networks, where = [{"uuid": self._network}], {"availability_zone": f"nova:{host}"}
        words = {"name": "server", "flavor_id": "small", "image_id": self._image, "networks": networks, **where}
        return self.wait(self.admin.compute.create_server(**{**words, **fields}), "ACTIVE")

    def delete_all(self) -> None:
        """All servers and volumes of the user; waits for the servers."""
        self.delete_servers()
        for volume in self.member.block_storage.volumes():
            # A volume is released just behind its server.
            self.member.block_storage.wait_for_status(volume, "available", wait=60)
            self.member.block_storage.delete_volume(volume)

    def running_on(self, server: Any) -> list[str]:
        """The hosts whose hypervisors have a running guest of the server."""
        return list(self._definitions(server))

    def definition(self, server: Any) -> str:
        """What the hypervisor of the running guest says that it has, in libvirt's XML."""
        (found,) = self._definitions(server).values()
        return found

    def _definitions(self, server: Any) -> dict[str, str]:
        found = {}
        for host, endpoint in self.machines.endpoints.items():
            connection = libvirt.open(endpoint.uri)
            try:
                for guest in connection.listAllDomains():
                    with unless_gone():
                        if guest.UUIDString() == server.id and guest.isActive():
                            found[host] = guest.XMLDesc()
            finally:
                connection.close()
        return found


@contextmanager
def guest_cloud(
    directory: Path,
    *,
    cells: Mapping[str, Sequence[str]],
    database: str = "mariadb",
    libvirt_options: Mapping[str, object] | None = None,
    options: Mapping[str, Mapping[str, Any]] = OPTIONS,
    kind: type[GuestCloud] = GuestCloud,
    storage: Sequence[str] = ("nfs",),
    networking: Networking = Networking(),
) -> Iterator[GuestCloud]:
    """Everything, started and at the end stopped. ``libvirt_options``: more of all hosts. ``storage``: Cinder's backends."""
    with ExitStack() as undo:
        machines = networking.machines(directory, [host for hosts in cells.values() for host in hosts])
        undo.callback(machines.stop)
        new_database = undo.enter_context(database_server(database))
        # One that is there may listen where hosts in namespaces of their own can't reach it.
        queue = undo.enter_context(own_broker(directory / "rabbit", machines.address)).url

        def surround(_cloud: Deployment) -> None:
            machines.start()
            services.start()
            policy = directory / "policy.yaml"
            policy.write_text(POLICY)
            services.write_client_files(directory, policy)

        given = {**options, "libvirt": {**options["libvirt"], **(libvirt_options or {})}}
        cloud = kind(
            directory, queue, machines, cells=cells, options=given, new_database=new_database, surround=surround
        )
        services = cloud.services = networking.services(
            directory / "services",
            machines,
            queue=f"{queue}/services",
            new_database=new_database,
            compute_url=f"{cloud.api_url}/v2.1",
            storage=storage,
        )
        undo.callback(services.stop)
        try:
            cloud.start()
            yield cloud
            cloud.stop()
        except BaseException:
            for process in cloud.processes.values():
                with suppress(ProcessLookupError):
                    process.kill()
            raise


@contextmanager
def guest_cloud_here(**options: Any) -> Iterator[GuestCloud]:
    """A `guest_cloud` with these options, in a folder of its own. Skips the test if this machine can't run it."""
    if reason := missing():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="causeway-guests-", ignore_cleanup_errors=True) as folder,
        guest_cloud(Path(folder), **options) as cloud,
    ):
        yield cloud
