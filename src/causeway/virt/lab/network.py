"""The network of the lab: an overlay and a DHCP server for each network.

Every host is a network namespace. Hosts are joined only by the *underlay*: a bridge in a namespace of its own, with an address
for each host, which carries only VXLAN. A network is a bridge ``brq<network id>`` on each host that has guests on it, with a
VXLAN device in it. The underlay's namespace has such a bridge too, which the DHCP servers join.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from causeway import durable
from causeway.model.network import Vif
from causeway.virt.lab.commands import ip_batch, links, namespaces
from causeway.virt.lab.dhcp import DhcpServer
from causeway.virt.lab.observer import Observer
from causeway.virt.lab.topology import NetworkTopology, default_segmentation_id
from causeway.virt.libvirt.commands import run

_VXLAN_PORT = 4789
# At which libvirtd listens for other hosts.
_TLS_PORT = 16514
_MULTICAST_GROUP = "239.1.1.1"
_UNDERLAY_NETWORK = "10.255"
# How often TCP repeats what is not answered: 4 take about six seconds, the kernel's own 15 a quarter of an hour. In a live
# migration QEMU waits so long for a dead peer, and the guest with it.
_TCP_RETRIES = 4
# Room for the largest guest frame and the 50 bytes that VXLAN adds.
_UNDERLAY_MTU = 9100


class NetworkAgent(Protocol):
    """Makes what ports are plugged into on one host."""

    def prepare(self, vif: Vif) -> None: ...


@dataclass
class PingResult:
    """``round_trip_ms``: the mean in milliseconds; None: no answer."""

    sent: int
    received: int
    round_trip_ms: float | None

    @property
    def answered(self) -> bool:
        """Whether there was any answer: a busy machine loses packets now and then, and so does a guest that has just arrived."""
        return self.received > 0


def ping_result(said: str, count: int) -> PingResult:
    """Reads the output of ``ping -q`` with ``count`` packets."""
    counts = re.search(r"(\d+) packets transmitted, (\d+) received", said)
    times = re.search(r"= [\d.]+/([\d.]+)/", said)
    return PingResult(
        sent=int(counts[1]) if counts else count,
        received=int(counts[2]) if counts else 0,
        round_trip_ms=float(times[1]) if times else None,
    )


@dataclass
class HostNetworkAgent:
    """The lab's network agent of one host."""

    network: LabNetwork
    host: str

    def prepare(self, vif: Vif) -> None:
        segmentation_id = vif.details.get("segmentation_id")
        self.network.ensure_network(
            self.host, vif.network_id, int(segmentation_id) if segmentation_id is not None else None, vif.mtu
        )


class LabNetwork:
    """Namespaces, overlays and DHCP servers, whose names begin with ``prefix``. Every method may be repeated."""

    def __init__(self, prefix: str, state_dir: Path) -> None:
        self._prefix = prefix
        self._state_dir = state_dir
        self._underlay = f"{prefix}-underlay"
        self._lock = threading.RLock()

    def namespace(self, host: str) -> str:
        return f"{self._prefix}-{host}"

    def addresses(self, hosts: list[str]) -> dict[str, str]:
        """host -> address on the underlay, of these hosts and of all that were ever in the lab."""
        with self._lock:
            return {host: _address(number) for host, number in self._host_numbers(hosts).items()}

    def agent(self, host: str) -> HostNetworkAgent:
        return HostNetworkAgent(self, host)

    def start(self, hosts: list[str]) -> None:
        """Makes the underlay and the hosts' namespaces, unless they exist."""
        self._state_dir.mkdir(parents=True, exist_ok=True)
        with self._lock:
            there = namespaces()
            if self._underlay not in there:
                run("ip", "netns", "add", self._underlay)
                ip_batch(
                    [
                        "link set lo up",
                        "link add underlay type bridge forward_delay 0 mcast_snooping 0",
                        f"link set underlay mtu {_UNDERLAY_MTU} up",
                        f"addr add {_UNDERLAY_NETWORK}.0.1/16 dev underlay",
                    ],
                    namespace=self._underlay,
                )
            numbers = self._host_numbers(hosts)
            for host in hosts:
                if self.namespace(host) not in there:
                    self._add_host(host, numbers[host])

    def stop(self) -> None:
        """Deletes everything: DHCP servers, overlays, namespaces."""
        with self._lock:
            self.sync(NetworkTopology())
            for name in namespaces():
                if name.startswith(f"{self._prefix}-"):
                    run("ip", "netns", "delete", name)

    def ensure_network(self, host: str, network_id: str, segmentation_id: int | None, mtu: int) -> None:
        """Makes the network's bridge on a host, joined to those of other hosts."""
        with self._lock:
            self._ensure_overlay(self.namespace(host), "underlay0", network_id, segmentation_id, mtu)

    def sync(self, topology: NetworkTopology) -> None:
        """Makes DHCP servers as the topology says, and deletes networks that it does not have on all hosts."""
        wanted = {network.id: network for network in topology.networks}
        with self._lock:
            there = namespaces()
            for server in self._dhcp_servers():
                if server.network_id not in wanted:
                    server.stop()
            keep = {_bridge(network_id) for network_id in wanted}
            for name in there:
                if name.startswith(f"{self._prefix}-") and not name.startswith(f"{self._prefix}-dhcp-"):
                    _remove_overlays(name, keep)
            for network in topology.networks:
                server = self._dhcp_server(network.id)
                if not any(subnet.enable_dhcp for subnet in network.subnets):
                    server.stop()
                    continue
                self._ensure_overlay(self._underlay, "underlay", network.id, network.segmentation_id, network.mtu)
                server.serve(network, self._underlay, _bridge(network.id))

    def dhcp_namespaces(self, topology: NetworkTopology) -> dict[str, str]:
        """Network id -> the namespace of its DHCP server, of networks that `sync` made one for."""
        there = namespaces()
        found = {network.id: self._dhcp_server(network.id).namespace for network in topology.networks}
        return {network_id: namespace for network_id, namespace in found.items() if namespace in there}

    def dhcp_namespace(self, network_id: str) -> str:
        """The namespace of the network's DHCP server, which may not exist."""
        return self._dhcp_server(network_id).namespace

    def ping(self, network_id: str, address: str, count: int = 3) -> PingResult:
        """Pings a guest from where the network's DHCP server is. Raises `GuestFailed` if there is none."""
        server = self._dhcp_server(network_id)
        # `ping` ends with 1 if nothing came back, which is an answer and no failure.
        said = run(
            *("ip", "netns", "exec", server.namespace, "sh", "-c", 'ping -n -q -i 0.2 -W 2 -c "$1" "$2" || [ $? = 1 ]'),
            *("ping", str(count), address),
            timeout=count * 2 + 10,
        )
        return ping_result(said, count)

    @contextmanager
    def hypervisors_apart(self, host: str) -> Iterator[None]:
        """While this lasts, a firewall keeps the host's hypervisor from reaching others. Guests' traffic still passes."""
        words = ("ip", "-n", self.namespace(host), "rule")
        rule = ("ipproto", "tcp", "dport", str(_TLS_PORT), "prohibit")
        run(*words, "add", *rule)
        try:
            yield
        finally:
            run(*words, "delete", *rule)

    def bytes_received(self, host: str) -> int:
        """Bytes that the host has received over the underlay since it was started."""
        shown = run("ip", "-n", self.namespace(host), "-json", "-s", "link", "show", "underlay0")
        count: int = json.loads(shown)[0]["stats64"]["rx"]["bytes"]
        return count

    @contextmanager
    def cut_off(self, host: str) -> Iterator[None]:
        """While this lasts, the host has no network: other hypervisors don't reach it. It keeps its addresses."""
        port = _port(self._host_numbers([host])[host])
        run("ip", "-n", self._underlay, "link", "set", port, "down")
        try:
            yield
        finally:
            run("ip", "-n", self._underlay, "link", "set", port, "up")

    def observer(self, network_id: str) -> Observer:
        """An observer of what guests of a network send to its DHCP server, which must exist."""
        hosts = {host: self.namespace(host) for host in self._host_numbers([])}
        return Observer(self.dhcp_namespace(network_id), hosts)

    def _dhcp_server(self, network_id: str) -> DhcpServer:
        return DhcpServer(network_id, f"{self._prefix}-dhcp-{network_id[:11]}", self._state_dir / "dhcp" / network_id)

    def _dhcp_servers(self) -> list[DhcpServer]:
        return [self._dhcp_server(path.name) for path in (self._state_dir / "dhcp").glob("*") if path.is_dir()]

    def _host_numbers(self, hosts: list[str]) -> dict[str, int]:
        """host -> number, which never changes: its address on the underlay follows from it. 1 is the underlay itself."""
        path = self._state_dir / "hosts.json"
        try:
            numbers = durable.read(path, msgspec.json.Decoder(dict[str, int]).decode) or {}
        except durable.Torn:
            numbers = self._numbers_in_use()
        for host in hosts:
            numbers.setdefault(host, max(numbers.values(), default=1) + 1)
        durable.write(path, json.dumps(numbers))
        return numbers

    def _numbers_in_use(self) -> dict[str, int]:
        """host -> number, of the hosts that exist, found by their addresses on the underlay."""
        numbers = {}
        prefix = f"{self._prefix}-"
        for namespace in namespaces():
            shown = run("ip", "-n", namespace, "-o", "-4", "addr", "show") if namespace.startswith(prefix) else ""
            address = re.search(rf"underlay0\s+inet {re.escape(_UNDERLAY_NETWORK)}\.(\d+)\.(\d+)/", shown)
            if address is not None:
                numbers[namespace.removeprefix(prefix)] = int(address[1]) * 256 + int(address[2])
        return numbers

    def _add_host(self, host: str, number: int) -> None:
        namespace, port = self.namespace(host), _port(number)
        run("ip", "netns", "add", namespace)
        ip_batch(
            [
                f"link add {port} mtu {_UNDERLAY_MTU} type veth peer name underlay0 mtu {_UNDERLAY_MTU} netns {namespace}",
                f"link set {port} master underlay up",
            ],
            namespace=self._underlay,
        )
        address = f"{_address(number)}/16"
        ip_batch(["link set lo up", "link set underlay0 up", f"addr add {address} dev underlay0"], namespace=namespace)
        set_retries = f"echo {_TCP_RETRIES} > /proc/sys/net/ipv4/tcp_retries2"
        run("ip", "netns", "exec", namespace, "sh", "-c", set_retries)

    def _ensure_overlay(
        self, namespace: str, underlay: str, network_id: str, segmentation_id: int | None, mtu: int
    ) -> None:
        bridge, number = _bridge(network_id), segmentation_id or default_segmentation_id(network_id)
        vxlan = f"vxlan-{number}"
        there = links(namespace)
        commands = []
        if bridge not in there:
            commands += [f"link add {bridge} type bridge forward_delay 0 mcast_snooping 0", f"link set {bridge} up"]
        if vxlan not in there:
            commands.append(
                f"link add {vxlan} mtu {mtu} type vxlan id {number} group {_MULTICAST_GROUP} dev {underlay}"
                f" dstport {_VXLAN_PORT}"
            )
        if there.get(vxlan) != bridge:
            commands.append(f"link set {vxlan} master {bridge} up")
        if commands:
            ip_batch(commands, namespace=namespace)


def _address(number: int) -> str:
    return f"{_UNDERLAY_NETWORK}.{number // 256}.{number % 256}"


def _port(number: int) -> str:
    """The name of a host's port in the underlay's bridge."""
    return f"host{number}"


def _bridge(network_id: str) -> str:
    return f"brq{network_id[:11]}"


def _remove_overlays(namespace: str, keep: set[str]) -> None:
    there = links(namespace)
    # A bridge with a guest in it stays, even if the network service does not know the network.
    used = {master for name, master in there.items() if master and name.startswith("tap")}
    gone = {name for name in there if name.startswith("brq")} - keep - used
    commands = [f"link delete {name}" for name, master in there.items() if master in gone and name.startswith("vxlan-")]
    commands += [f"link delete {name}" for name in gone]
    if commands:
        ip_batch(commands, namespace=namespace)
