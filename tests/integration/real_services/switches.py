"""Open vSwitch on each host, with the userspace datapath (no kernel module), and Neutron's own agent beside it.

All of it runs in the host's namespaces, where Open vSwitch's usual paths lead to the host's own: os-vif, libvirt and agent
find it where they look for it. The agents answer DHCP themselves (their extension "dhcp"), and are the firewall of the ports'
security groups, with flows (their driver "openvswitch"): the switch tracks connections in user space, too.
"""

from __future__ import annotations

import json
import shutil
import sys
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from causeway.virt.lab.network import PingResult, ping_result
from tests.functional.processes.own_process import until
from tests.integration.real_services.configuration import render
from tests.integration.real_services.machine import VENV, Machine
from tests.integration.real_services.machines import PROVIDER, Machines, run

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
PLACE = Path("/run/openvswitch")
# where os-vif and the agent look for it
CONNECTION = f"unix:{PLACE}/db.sock"
# Of an agent's log: some minutes.
LINES_SHOWN = 200
# How the names of the devices of guests' ports begin.
_PLUGGED = ("tap", "qbr", "qvb", "qvo")


# A connection through a device; what is heard is printed.
_CALL = """
import socket
with socket.socket() as call:
    call.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"{device}")
    call.settimeout(4)
    try:
        call.connect(("{address}", {port}))
        print(call.recv(100).decode())
    except OSError:
        pass
"""


def missing() -> str | None:
    """Why there can be no switches here; None if there can."""
    if SCHEMA.exists() and shutil.which("ovs-vswitchd", path="/usr/sbin:/usr/bin"):
        return None
    return "no Open vSwitch: install openvswitch-switch"


class Switches:
    """``machine`` starts the processes, ``queue`` is RabbitMQ's virtual host of Neutron."""

    def __init__(self, machines: Machines, machine: Machine, queue: str) -> None:
        self._machines, self._machine, self._queue = machines, machine, queue
        # host -> its integration bridge, if it is not "br-int"
        self.bridges: dict[str, str] = {}
        # (host, device) -> address
        self._probed: dict[tuple[str, str], str] = {}

    def start(self, host: str) -> None:
        """A switch and its agent."""
        folder = self._machine.directory / "state" / f"switch-{host}"
        folder.mkdir(parents=True)
        PLACE.mkdir(parents=True, exist_ok=True)
        inside = self._machines.inside(host)
        run(*inside, "mount", "--bind", str(folder), str(PLACE))
        run("ovsdb-tool", "create", str(folder / "conf.db"), str(SCHEMA))
        self._start_database(host, folder)
        self.control(host, "--no-wait", "init")
        names = (f"external_ids:system-id={host}", f"external_ids:hostname={host}")
        self.control(host, "--no-wait", "set", "Open_vSwitch", ".", *names)
        self._start_switch(host)
        bridge = ("add-br", "br-provider", "--", "set", "bridge", "br-provider", "datapath_type=netdev")
        self.control(host, *bridge, "--", "add-port", "br-provider", PROVIDER)
        self._prepare_agent(host)
        self.start_agent(host)

    def lose_power(self, host: str) -> None:
        """Without notice. What its kernel has of guests' ports is gone, what its switch has noted is not."""
        for name in (self.agent(host), f"vswitchd-{host}", f"ovsdb-{host}"):
            self._machine.kill(name)
        inside = self._machines.inside(host)
        for link in json.loads(run(*inside, "ip", "-json", "link", "show")):
            if link["ifname"].startswith(_PLUGGED):
                # The other end of a pair goes with the first one.
                run(*inside, "sh", "-c", f"! ip link show {link['ifname']} || ip link delete {link['ifname']}")

    def regain_power(self, host: str) -> None:
        folder = self._machine.directory / "state" / f"switch-{host}"
        for left in folder.glob("*.sock"):
            left.unlink()
        self._start_database(host, folder)
        self._start_switch(host)
        self.control(host, "show")
        self._give_addresses(host)
        self.start_agent(host)

    def _start_database(self, host: str, folder: Path) -> None:
        database = ("ovsdb-server", str(folder / "conf.db"), f"--remote=punix:{PLACE}/db.sock")
        command = [*self._machines.inside(host), *database, f"--unixctl={PLACE}/ovsdb.ctl"]
        self._machine.start(f"ovsdb-{host}", command)
        self._machine.await_that((folder / "db.sock").exists, f"ovsdb-{host}")

    def _start_switch(self, host: str) -> None:
        command = ["ovs-vswitchd", CONNECTION, f"--unixctl={PLACE}/vswitchd.ctl"]
        self._machine.start(f"vswitchd-{host}", [*self._machines.inside(host), *command])

    def _prepare_agent(self, host: str) -> None:
        """What the host's agent needs before its first start."""

    def start_agent(self, host: str) -> None:
        configuration = self._machine.write(f"etc/neutron/agent-{host}.ini", render(self._agent(host)))
        self._machine.start(
            self.agent(host),
            [*self._machines.inside(host), VENV / "bin/neutron-openvswitch-agent", "--config-file", configuration],
        )

    def agent(self, host: str) -> str:
        """The name of the process that wires the host's ports."""
        return f"agent-{host}"

    def bridge(self, host: str) -> str:
        """The host's integration bridge."""
        return self.bridges.get(host, "br-int")

    def wires(self, host: str, admin: Any, port_id: str) -> bool:
        """Whether a port is wired on the host."""
        port = admin.network.get_port(port_id)
        return (port.status, port.binding_host_id) == ("ACTIVE", host)

    def settle(self, host: str) -> None:
        """Waits until the host's agent has deleted the flows that an agent before it may have left.

        It does so once, in the second round in which ports changed. If a security group gets new members in that round, it
        deletes their flows as well, but believes from then on that they are installed: the host's guests never hear from these
        members (Neutron 29: `cleanup_stale_flows`, and the cookie of `update_cookie_context`). So two ports that belong to
        nobody are plugged, one after the other, before there are others.
        """
        log = self._machine.log_file(f"agent-{host}")
        for number, word in enumerate(("'added': 1", "cleanup stale flows")):
            device = f"nobody{number}"
            identity = (f"external_ids:iface-id={uuid.uuid4()}", f"external_ids:attached-mac=fa:16:3e:00:00:0{number}")
            interface = ("--", "set", "Interface", device, "type=internal", *identity)
            self.control(host, "add-port", "br-int", device, *interface)
            self._machine.await_that(partial(_says, log, word), f"agent-{host}")
        for number in range(2):
            self.control(host, "del-port", "br-int", f"nobody{number}")

    def devices(self, host: str) -> set[str]:
        """The names of the network devices of the host's kernel, and of the interfaces that its switch has."""
        links = json.loads(run(*self._machines.inside(host), "ip", "-json", "link", "show"))
        known = self.control(host, "--bare", "--columns=name", "list", "Interface").split()
        return {link["ifname"] for link in links} | set(known)

    def control(self, host: str, *words: str) -> str:
        """``ovs-vsctl`` on the host."""
        return run(*self._machines.inside(host), "ovs-vsctl", "--timeout=15", *words)

    def ping(
        self, host: str, admin: Any, network: str, address: str, count: int = 3, *, stranger: bool = False
    ) -> PingResult:
        """From a host, which is given a port of its own on the network for that.

        A guest that moved has said nothing to the provider network yet: its answer to the question for its address, which goes to
        everybody, shows the switches where it is now.
        """
        self.address(host, admin, network, stranger=stranger)
        inside, probe = self._machines.inside(host), _probe(network, stranger)
        run(*inside, "ip", "neighbour", "flush", "dev", probe)
        command = f"ping -n -q -i 0.2 -W 2 -c {count} -I {probe} {address} || [ $? = 1 ]"
        return ping_result(run(*inside, "sh", "-c", command), count)

    def state(self, host: str) -> str:
        """What the host's switch knows: ports, neighbours, addresses that it learned, flows, connections; its agent's log."""
        inside = self._machines.inside(host)
        appctl = ("ovs-appctl", "--target", f"{PLACE}/vswitchd.ctl")
        commands = (
            ("ovs-vsctl", "show"),
            ("ip", "neighbour"),
            (*appctl, "fdb/show", "br-int"),
            ("ovs-ofctl", "dump-flows", "br-int"),
            (*appctl, "dpctl/dump-conntrack"),
        )

        def answer(command: tuple[str, ...]) -> str:
            try:
                return run(*inside, *command)
            except AssertionError as failure:
                # The others may still show what is wrong.
                return str(failure)

        answers = [f"{' '.join(command)} on {host}:\n{answer(command)}" for command in commands]
        # Every two seconds it says that it looks for changes.
        log = self._machine.log_file(f"agent-{host}").read_text(errors="replace").splitlines()
        said = "\n".join([line for line in log if "Agent rpc_loop" not in line][-LINES_SHOWN:])
        return "\n".join([*answers, f"what the agent did last on {host}:\n{said}"])

    def heard(
        self, host: str, admin: Any, network: str, address: str, port: int, *, stranger: bool = False
    ) -> str | None:
        """What is said by whoever listens at a TCP port, from a host; None if no connection comes about."""
        self.address(host, admin, network, stranger=stranger)
        program = _CALL.format(device=_probe(network, stranger), address=address, port=port)
        said = run(*self._machines.inside(host), sys.executable, "-I", "-c", program)
        return said.strip() or None

    def address(self, host: str, admin: Any, network: str, *, stranger: bool = False) -> str:
        """Of the host on a network: it has a port there from now on, in the project's default security group.

        ``stranger``: another one, in no group and without a firewall of its own.
        """
        device = _probe(network, stranger)
        if (host, device) not in self._probed:
            more = {"port_security_enabled": False, "security_groups": []} if stranger else {}
            self._probed[host, device] = self._plug(host, admin, network, device, more)
        return self._probed[host, device]

    def _plug(self, host: str, admin: Any, network: str, device: str, more: Mapping[str, Any]) -> str:
        owner = {"device_owner": "compute:probe", "device_id": f"probe-{host}", "binding:host_id": host}
        port = admin.network.create_port(network_id=network, name=f"probe-{host}", **owner, **more)
        identity = (f"external_ids:iface-id={port.id}", f"external_ids:attached-mac={port.mac_address}")
        interface = ("--", "set", "Interface", device, "type=internal", f'mac="{port.mac_address}"', *identity)
        self.control(
            host, "--may-exist", "add-port", self.bridge(host), device, *interface, "external_ids:iface-status=active"
        )
        address: str = port.fixed_ips[0]["ip_address"]
        self._give_address(host, device, address)
        until(lambda: admin.network.get_port(port.id).status, lambda seen: seen == "ACTIVE", "the probe's port")
        return address

    def _give_addresses(self, host: str) -> None:
        """To the switch's own ports, which lose them when it ends."""
        for (where, device), address in self._probed.items():
            if where == host:
                self._give_address(host, device, address)

    def _give_address(self, host: str, device: str, address: str) -> None:
        inside = self._machines.inside(host)
        # Each device answers for its own address only.
        settings = (f"net.ipv4.conf.{device}.arp_ignore=1", f"net.ipv4.conf.{device}.arp_announce=2")
        run(*inside, "sysctl", "-q", "-w", *settings)
        run(*inside, "ip", "link", "set", device, "up")
        run(*inside, "ip", "addr", "replace", f"{address}/24", "dev", device)

    def _agent(self, host: str) -> dict[str, dict[str, object]]:
        state = self._machine.directory / "state" / f"neutron-{host}"
        state.mkdir(parents=True, exist_ok=True)
        return {
            "DEFAULT": {"host": host, "transport_url": self._queue, "state_path": state},
            "oslo_concurrency": {"lock_path": state},
            "ovs": {
                "datapath_type": "netdev",
                "integration_bridge": self.bridge(host),
                "bridge_mappings": "physical:br-provider",
                "ovsdb_connection": CONNECTION,
            },
            "agent": {
                "tunnel_types": "",
                "root_helper": "",
                "use_helper_for_ns_read": "false",
                "report_interval": 10,
                "extensions": "dhcp",
            },
            "DHCP": {"enable_ipv6": "false"},
            "securitygroup": {"enable_security_group": "true", "firewall_driver": "openvswitch"},
        }


def _says(log: Path, word: str) -> bool:
    return word in log.read_text(errors="replace")


def _probe(network: str, stranger: bool) -> str:
    """The device of a host's own port on a network."""
    return f"{'st' if stranger else 'pr'}{network[:11]}"
