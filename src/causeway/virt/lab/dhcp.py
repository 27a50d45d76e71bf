"""One DHCP server (dnsmasq) for each network, in a namespace of its own, as Neutron's DHCP agent has it.

It answers only ports that it knows. It reads new ports after SIGHUP. If a port was deleted or changed, the server is restarted,
which also discards the port's lease: leases are not on disk.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import select
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from causeway.errors import GuestFailed
from causeway.virt.lab.commands import ip_batch, links, namespaces, process_runs
from causeway.virt.lab.topology import NetworkOfLab, SubnetTopology
from causeway.virt.libvirt.commands import run

_LEASE_SECONDS = 86400
_STOP_SECONDS = 5.0


@dataclass
class DhcpServer:
    network_id: str
    namespace: str
    state_dir: Path

    def serve(self, network: NetworkOfLab, bridge_namespace: str, bridge: str) -> None:
        """Serves the network's subnets and ports. Quick if nothing changed."""
        subnets = [subnet for subnet in network.subnets if subnet.enable_dhcp]
        command = self._command(subnets, network.mtu)
        settings = json.dumps([command, [subnet.dhcp_address for subnet in subnets]])
        before, lines = self._read("hosts").splitlines(), _host_lines(network)
        running = process_runs(self.state_dir / "pid", str(self.state_dir))
        if running and settings == self._read("settings") and before == lines and self.namespace in namespaces():
            return
        self.state_dir.mkdir(parents=True, exist_ok=True)
        (self.state_dir / "hosts").write_text("".join(f"{line}\n" for line in lines))
        same_settings = settings == self._read("settings")
        if running and same_settings and set(before) <= set(lines) and self.namespace in namespaces():
            os.kill(running, signal.SIGHUP)
            return
        self._stop_process()
        if not same_settings or not self._is_joined(bridge_namespace, bridge):
            self._join(subnets, network.mtu, bridge_namespace, bridge)
        # The command returns when the server serves, or fails with the reason.
        run("ip", "netns", "exec", self.namespace, *command)
        (self.state_dir / "settings").write_text(settings)

    def stop(self) -> None:
        """Ends the server and deletes its namespace, if they exist."""
        self._stop_process()
        if self.namespace in namespaces():
            if "dhcp0" in links(self.namespace):
                ip_batch(["link delete dhcp0"], namespace=self.namespace)
            run("ip", "netns", "delete", self.namespace)
        shutil.rmtree(self.state_dir, ignore_errors=True)

    def _read(self, name: str) -> str:
        path = self.state_dir / name
        return path.read_text(errors="replace") if path.exists() else ""

    def _command(self, subnets: list[SubnetTopology], mtu: int) -> list[str]:
        command = ["dnsmasq", "--conf-file=", "--no-hosts", "--no-resolv", "--port=0", "--user=root", "--group=root"]
        command += ["--except-interface=lo", "--interface=dhcp0", "--bind-interfaces", "--dhcp-authoritative"]
        command += ["--leasefile-ro", f"--pid-file={self.state_dir / 'pid'}", "--quiet-dhcp", "--no-ping"]
        command += [f"--dhcp-hostsfile={self.state_dir / 'hosts'}", f"--dhcp-option-force=option:mtu,{mtu}"]
        for number, subnet in enumerate(subnets):
            network = ipaddress.ip_network(subnet.cidr)
            tag = f"subnet{number}"
            command.append(
                f"--dhcp-range=set:{tag},{network.network_address},static,{network.netmask},{_LEASE_SECONDS}s"
            )
            command.append(f"--dhcp-option=tag:{tag},option:router{',' + subnet.gateway if subnet.gateway else ''}")
            if subnet.dns:
                command.append(f"--dhcp-option=tag:{tag},option:dns-server,{','.join(subnet.dns)}")
        return command

    @property
    def _port(self) -> str:
        """The server's port in the network's bridge."""
        return f"dh{self.network_id[:11]}"

    def _is_joined(self, bridge_namespace: str, bridge: str) -> bool:
        return (
            self.namespace in namespaces()
            and "dhcp0" in links(self.namespace)
            and links(bridge_namespace).get(self._port) == bridge
        )

    def _join(self, subnets: list[SubnetTopology], mtu: int, bridge_namespace: str, bridge: str) -> None:
        if self.namespace not in namespaces():
            run("ip", "netns", "add", self.namespace)
        port, mac = self._port, mac_of_server(self.network_id)
        ip_batch(
            [
                # Deletes both ends at once. A deleted namespace would release its end only later.
                *([f"link delete {port}"] if port in links(bridge_namespace) else []),
                f"link add {port} mtu {mtu} type veth peer name dhcp0 mtu {mtu} address {mac} netns {self.namespace}",
                f"link set {port} master {bridge} up",
            ],
            namespace=bridge_namespace,
        )
        addresses = [f"{subnet.dhcp_address}/{ipaddress.ip_network(subnet.cidr).prefixlen}" for subnet in subnets]
        ip_batch(
            ["link set lo up", "link set dhcp0 up", *(f"addr add {address} dev dhcp0" for address in addresses)],
            namespace=self.namespace,
        )

    def _stop_process(self) -> None:
        pid = process_runs(self.state_dir / "pid", str(self.state_dir))
        if pid is None:
            return
        handle = os.pidfd_open(pid)
        try:
            os.kill(pid, signal.SIGTERM)
            if not select.select([handle], [], [], _STOP_SECONDS)[0]:
                raise GuestFailed(f"The DHCP server of network {self.network_id} did not end.", details=f"pid {pid}")
        finally:
            os.close(handle)


def mac_of_server(network_id: str) -> str:
    """The MAC address of a network's DHCP server, which is always the same.

    A guest that knows another one sends to nobody until its ARP cache asks again, which takes up to a minute.
    """
    return ":".join(f"{each:02x}" for each in (0x02, *hashlib.sha256(network_id.encode()).digest()[:5]))


def _host_lines(network: NetworkOfLab) -> list[str]:
    """The lines of dnsmasq's host file for IPv4 addresses. As in Neutron, names come from addresses."""
    addresses = [(port.mac.lower(), ipaddress.ip_address(port.ip)) for port in network.ports]
    return sorted(f"{mac},host-{str(ip).replace('.', '-')},{ip}" for mac, ip in addresses if ip.version == 4)
