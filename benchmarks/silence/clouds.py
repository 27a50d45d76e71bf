"""The clouds whose networks are compared: each has two hosts in one cell and one in another, with real guests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.downtime import connect, flavor
from causeway.embedded.cloud import EmbeddedCloud
from causeway.store.database import Database
from causeway.virt.lab.hosts import Lab, missing
from causeway.virt.lab.network import LabNetwork
from tests.integration.real_services import guests, ovn
from tests.integration.real_services.guests import GuestCloud, Networking, guest_cloud
from tests.integration.real_services.hybrid import HYBRID

# The lab's bridges, beside devcloud; the others beside the real services.
LAB = "lab"
NETWORKINGS = {"agents": Networking(), "hybrid": HYBRID, "ovn": ovn.OVN}
NETWORKS = (LAB, *NETWORKINGS)
PATIENCE = 300
HOSTS = ("cell1-host1", "cell1-host2", "cell2-host1")
CELLS = {"cell1": HOSTS[:2], "cell2": HOSTS[2:]}


@dataclass(frozen=True)
class Place:
    """Where somebody can be on a guest's network. ``inside``: how a command begins that runs there."""

    inside: Sequence[str]
    address: str


class Cloud(Protocol):
    """``compute``: the proxy of openstacksdk, of an administrator. ``uris``: host -> where its libvirtd is."""

    #: two of one cell, and one of another
    hosts: tuple[str, str, str]
    compute: Any
    api_database: Database
    uris: dict[str, str]

    def boot(self, host: str) -> Any:
        """A server, ACTIVE on a host, that others of its network may ask for echoes."""

    def place(self, host: str) -> Place:
        """On the host, or where this cloud has somebody."""

    @property
    def underlay(self) -> LabNetwork:
        """Between the hypervisors."""


class LabCloud:
    """On the lab's bridges: the guest is asked from where the network's DHCP server is, which is on no host."""

    def __init__(self, cloud: EmbeddedCloud) -> None:
        self._cloud = cloud
        connection = connect(cloud)
        self.compute, self.api_database = connection.compute, cloud.api_database
        self.hosts = HOSTS
        lab = Lab(cloud.state.lab)
        self.underlay = lab.network
        # They run: this only says where.
        self.uris = {host: endpoint.uri for host, endpoint in lab.start(list(self.hosts)).items()}
        self._image = connection.image.find_image("demo")
        self._network = connection.network.find_network("demo-net")

    def boot(self, host: str) -> Any:
        made = self.compute.create_server(
            name="asked",
            flavor_id=flavor(self.compute, "any", None, 1),
            image_id=self._image.id,
            networks=[{"uuid": self._network.id}],
            availability_zone=f"nova:{host}",
        )
        return self.compute.wait_for_server(made, wait=PATIENCE)

    def place(self, host: str) -> Place:  # noqa: ARG002
        return Place(("ip", "netns", "exec", self.underlay.dhcp_namespace(self._network.id)), "0.0.0.0")


class CloudBeside:
    """Beside the real services: the guest is asked from a port of a host's own."""

    def __init__(self, cloud: GuestCloud) -> None:
        self._cloud = cloud
        self.compute, self.api_database = cloud.admin.compute, cloud.api_database
        self.hosts = HOSTS
        self.uris = {host: endpoint.uri for host, endpoint in cloud.machines.endpoints.items()}
        self.underlay = cloud.machines.lab.network

    def boot(self, host: str) -> Any:
        return self._cloud.show(self._cloud.boot_on(host))

    def place(self, host: str) -> Place:
        address = self._cloud.services.switches.address(host, self._cloud.admin, self._cloud.network)
        return Place(self._cloud.machines.inside(host), address)


def why_not(network: str) -> str | None:
    """Why there can be no such cloud here; None if there can."""
    if network == LAB:
        return missing()
    return guests.missing() or (ovn.missing() if network == "ovn" else None)


@contextmanager
def cloud_of(network: str) -> Iterator[Cloud]:
    """A new one. Ends with the context."""
    with tempfile.TemporaryDirectory(prefix="silence-", ignore_cleanup_errors=True) as directory:
        if network != LAB:
            with guest_cloud(Path(directory), cells=CELLS, networking=NETWORKINGS[network]) as beside:
                yield CloudBeside(beside)
            return
        cloud = EmbeddedCloud(Path(directory), port=0, cells=2, hosts_per_cell=2, driver="libvirt")
        cloud.start()
        try:
            yield LabCloud(cloud)
        finally:
            cloud.stop()
            Lab(cloud.state.lab).stop(keep_guests=False)
