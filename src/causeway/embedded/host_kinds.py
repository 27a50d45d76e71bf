"""The hypervisors of an embedded cloud: simulated, or a lab of libvirt hosts."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from oslo_config import cfg

from causeway import durable
from causeway.embedded.settings import StateDir
from causeway.http.strict import WsgiApp
from causeway.virt.driver import Driver
from causeway.virt.simulated import SimulatedDriver
from causeway.virt.simulated.hardware import SimulatedHardware
from causeway.virt.simulated.host_files import has_port

if TYPE_CHECKING:
    from causeway.devcloud import Devcloud
    from causeway.virt.libvirt.storage.disk_pools import DiskPool

LOG = logging.getLogger(__name__)


class Hosts(ABC):
    """Makes the drivers of all hosts."""

    @abstractmethod
    def start(self, names: list[str]) -> None: ...

    @abstractmethod
    def driver(self, name: str) -> Driver: ...

    @abstractmethod
    def demo_image(self) -> tuple[Path, str]:
        """Returns a small image that these hosts can boot, and its disk format."""

    @abstractmethod
    def stop(self) -> None:
        """Closes the connections. Guests continue to run."""


class SimulatedHosts(Hosts):
    """Hosts whose guests are small files.

    ``live_networks``: host -> the network in which it reaches others. ``stores``: host -> the store that it shares with others.
    """

    def __init__(
        self,
        state: StateDir,
        devcloud: Devcloud,
        hardware: SimulatedHardware,
        live_networks: dict[str, str],
        stores: dict[str, str],
    ) -> None:
        self._state = state
        self._devcloud = devcloud
        self._hardware = hardware
        self._live_networks = live_networks
        self._stores = stores

    def start(self, names: list[str]) -> None:  # noqa: ARG002
        self._devcloud.has_plugged = lambda host, port_id: has_port(self._state.host(host), port_id)

    def driver(self, name: str) -> Driver:
        return SimulatedDriver(
            name,
            self._state.host(name),
            hardware=self._hardware,
            peers_dir=self._state.path / "hosts",
            live_network=self._live_networks[name],
            shared_store=self._state.path / "stores" / self._stores[name] if name in self._stores else None,
        )

    def stop(self) -> None:
        self._devcloud.has_plugged = None

    def demo_image(self) -> tuple[Path, str]:
        path = self._state.path / "demo-image.raw"
        if not path.exists():
            durable.write(path, b"A disk image for simulated hosts.\n".ljust(4096, b"\0"))
        return path, "raw"


class LibvirtHosts(Hosts):
    """A libvirtd for each host, in its own namespaces, and networks with DHCP, as devcloud has them."""

    def __init__(
        self,
        state: StateDir,
        devcloud: Devcloud,
        conf: cfg.ConfigOpts,
        metadata: Callable[[str], WsgiApp],
        pools: Mapping[str, DiskPool],
    ) -> None:
        """``metadata``: given a network's id, returns the application that answers its guests at 169.254.169.254.

        ``pools``: host -> the pool of Ceph that has its disks; other hosts have what the options say.
        """
        from causeway.virt.lab.hosts import Lab, LibvirtEndpoint
        from causeway.virt.lab.metadata_listener import MetadataListeners

        self._state = state
        self._devcloud = devcloud
        self._conf = conf
        self._pools = pools
        self._lab = Lab(state.lab)
        self._listeners = MetadataListeners(metadata)
        self._endpoints: dict[str, LibvirtEndpoint] = {}

    def start(self, names: list[str]) -> None:
        self._endpoints = self._lab.start(names)
        self._devcloud.on_ports_changed = self._wire
        self._devcloud.makes_luks = True
        self._wire()

    def driver(self, name: str) -> Driver:
        from causeway.virt.lab.drivers import driver_of
        from causeway.virt.libvirt.storage import disk_pools

        return driver_of(
            self._endpoints[name],
            virt_type=self._conf.libvirt.virt_type,
            screens=self._conf.vnc.enabled,
            serial_consoles=self._conf.serial_console.enabled,
            pool=self._pools.get(name) or disk_pools.from_options(self._conf),
        )

    def demo_image(self) -> tuple[Path, str]:
        from causeway.virt.lab.guest_image import build_guest_image

        return build_guest_image(self._state.path / "cache").path, "qcow2"

    def stop(self) -> None:
        self._devcloud.on_ports_changed = None
        self._listeners.stop()
        self._lab.stop(keep_guests=True)

    def _wire(self) -> None:
        from causeway.virt.lab.topology import NetworkOfLab, NetworkTopology, PortTopology, SubnetTopology

        networks = [
            NetworkOfLab(
                id=network.id,
                segmentation_id=network.segmentation_id,
                mtu=network.mtu,
                subnets=[
                    SubnetTopology(
                        cidr=subnet.cidr,
                        # devcloud has no routers: the gateway's address is free for the DHCP server
                        dhcp_address=subnet.gateway_ip or str(list(ip_network(subnet.cidr).hosts())[-1]),
                        gateway=subnet.gateway_ip,
                        dns=list(subnet.dns_nameservers),
                        enable_dhcp=subnet.enable_dhcp,
                    )
                    for subnet in network.subnets
                ],
                ports=[
                    PortTopology(mac=port.mac, ip=address, host=port.host)
                    for port in network.ports
                    for _subnet, address in port.ips
                ],
            )
            for network in self._devcloud.network_topology()
        ]
        topology = NetworkTopology(networks)
        self._lab.network.sync(topology)
        self._listeners.sync(self._lab.network.dhcp_namespaces(topology))
