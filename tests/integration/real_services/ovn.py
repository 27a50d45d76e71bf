"""Neutron's ML2/OVN for hosts with real guests: OVN's databases and northd, and an ovn-controller on each host.

Hosts carry their guests' traffic to one another in Geneve, on a network of its own: its address is on the switch, in user space.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from causeway.virt.lab.network import LabNetwork
from tests.integration.real_services import configuration
from tests.integration.real_services.configuration import Options
from tests.integration.real_services.guests import Networking, ServicesWithAgents
from tests.integration.real_services.machine import VENV, Machine
from tests.integration.real_services.machines import Machines, run
from tests.integration.real_services.switches import CONNECTION, Switches
from tests.ports import free_ports

UNDERLAY = "tunnels0"
RUN = Path("/run/ovn")
_SCHEMAS = Path("/usr/share/ovn")
_KINDS = ("nb", "sb")


def missing() -> str | None:
    """Why there can be no OVN here; None if there can."""
    return None if (_SCHEMAS / "ovn-nb.ovsschema").exists() else "no OVN: install ovn-central and ovn-host"


class OvnMachines(Machines):
    """Also on a third network, which carries only Geneve. ``tunnels``: host -> its address there."""

    def __init__(self, directory: Path, hosts: Sequence[str]) -> None:
        super().__init__(directory, hosts)
        digest = hashlib.sha256(str(directory).encode()).hexdigest()[:7]
        bridge = self._bridges[UNDERLAY] = f"cwu{digest}"
        self._ports |= {(host, UNDERLAY): f"{bridge}-{number}" for number, host in enumerate(hosts)}
        self.lab.network = LabNetwork(f"cwo{digest[:5]}", directory / "lab/network")
        self.tunnels = {host: f"10.78.0.{number}" for number, host in enumerate(hosts, start=1)}
        run("ip", "link", "add", bridge, "type", "bridge", "mcast_snooping", "0")
        run("ip", "link", "set", bridge, "up")


class Central:
    """OVN's two databases and northd. ``urls``: "nb" and "sb" -> where others reach the database."""

    def __init__(self, machine: Machine, address: str) -> None:
        self._machine = machine
        self._folder = machine.directory / "state/ovn"
        self.urls = {kind: f"tcp:{address}:{port}" for kind, port in zip(_KINDS, free_ports(2), strict=True)}

    def start(self) -> None:
        self._folder.mkdir(parents=True)
        for kind, url in self.urls.items():
            database, socket = self._folder / f"{kind}.db", self._folder / f"{kind}.sock"
            run("ovsdb-tool", "create", str(database), str(_SCHEMAS / f"ovn-{kind}.ovsschema"))
            _, address, port = url.split(":")
            listens = (f"--remote=punix:{socket}", f"--remote=ptcp:{port}:{address}")
            self._machine.start(
                f"ovn-{kind}", ["ovsdb-server", database, *listens, f"--unixctl={self._folder}/{kind}.ctl"]
            )
            self._machine.await_that(socket.exists, f"ovn-{kind}")
        databases = [f"--ovn{kind}-db=unix:{self._folder}/{kind}.sock" for kind in _KINDS]
        self._machine.start("ovn-northd", ["ovn-northd", *databases, f"--unixctl={self._folder}/northd.ctl"])

    def ask(self, kind: str, *words: str) -> str:
        """``ovn-nbctl`` or ``ovn-sbctl``."""
        return run(f"ovn-{kind}ctl", f"--db=unix:{self._folder}/{kind}.sock", "--timeout=10", *words)


class OvnSwitches(Switches):
    """An ovn-controller instead of Neutron's agent."""

    def __init__(self, machines: OvnMachines, machine: Machine, central: Central) -> None:
        super().__init__(machines, machine, "")
        self.central, self._tunnels = central, machines.tunnels

    def _prepare_agent(self, host: str) -> None:
        inside = self._machines.inside(host)
        own = self._machine.directory / "state" / f"ovn-{host}"
        own.mkdir(parents=True)
        RUN.mkdir(parents=True, exist_ok=True)
        run(*inside, "mount", "--bind", str(own), str(RUN))
        tunnel = self._tunnels[host]
        bridge = ("add-br", "br-underlay", "--", "set", "bridge", "br-underlay", "datapath_type=netdev")
        self.control(host, *bridge, "--", "add-port", "br-underlay", UNDERLAY)
        self._give_addresses(host)
        # The kernel must not answer guests' questions for the addresses of the host's own ports on their networks.
        run(*inside, "sysctl", "-q", "-w", "net.ipv4.conf.all.arp_ignore=1")
        said = {
            "ovn-remote": self.central.urls["sb"],
            "ovn-encap-type": "geneve",
            "ovn-encap-ip": tunnel,
            "ovn-bridge": self.bridge(host),
            "ovn-bridge-datapath-type": "netdev",
            "ovn-bridge-mappings": "physical:br-provider",
            # A router's gateway is on one of these hosts.
            "ovn-cms-options": "enable-chassis-as-gw",
        }
        self.control(
            host, "set", "Open_vSwitch", ".", *(f'external_ids:{name}="{value}"' for name, value in said.items())
        )

    def _give_addresses(self, host: str) -> None:
        super()._give_addresses(host)
        inside = self._machines.inside(host)
        run(*inside, "ip", "addr", "replace", f"{self._tunnels[host]}/24", "dev", "br-underlay")
        run(*inside, "ip", "link", "set", "br-underlay", "up")

    def start_agent(self, host: str) -> None:
        command = ["ovn-controller", CONNECTION, f"--pidfile={RUN}/ovn-controller.pid"]
        self._machine.start(self.agent(host), [*self._machines.inside(host), *command])

    def agent(self, host: str) -> str:
        return f"controller-{host}"

    def wires(self, host: str, admin: Any, port_id: str) -> bool:  # noqa: ARG002
        """As OVN has it. Neutron takes a port down in a live migration, and may miss that it came up."""
        columns = ("--bare", "--columns=up,chassis", "find", "Port_Binding", f"logical_port={port_id}")
        up, _, chassis = self.central.ask("sb", *columns).strip().partition("\n")
        known = self.central.ask("sb", "--bare", "--columns=_uuid", "find", "Chassis", f"name={host}").strip()
        return up == "true" and chassis.strip() == known

    def settle(self, host: str) -> None:
        """OVN's flows are no agent's."""

    def state(self, host: str) -> str:
        answers = [f"ovs-vsctl show on {host}:\n{self.control(host, 'show')}"]
        for kind in _KINDS:
            with suppress(AssertionError):
                answers.append(self.central.ask(kind, "show"))
        return "\n".join(answers)


class OvnServices(ServicesWithAgents):
    """Neutron with ML2/OVN."""

    switches: OvnSwitches

    def __init__(self, directory: Path, machines: OvnMachines, **options: object) -> None:
        super().__init__(directory, machines, **options)  # type: ignore[arg-type]

    def _make_switches(self, machines: Machines, queue: str) -> Switches:  # noqa: ARG002 - OVN has databases of its own
        if not isinstance(machines, OvnMachines):
            raise TypeError("OVN's hosts have a third network")
        return OvnSwitches(machines, self.machine, Central(self.machine, machines.address))

    def _make_databases(self) -> None:
        self.switches.central.start()
        super()._make_databases()

    def _neutron(self) -> Options:
        options = super()._neutron()
        return {**options, "DEFAULT": {**options["DEFAULT"], "service_plugins": "qos,ovn-router,trunk"}}

    def _ml2(self) -> Options:
        options = configuration.ml2()
        geneve = {"type_drivers": "flat,vlan,geneve,local", "tenant_network_types": "geneve"}
        return {
            **options,
            "ml2": {**options["ml2"], **geneve, "mechanism_drivers": "ovn", "overlay_ip_version": 4},
            "ml2_type_geneve": {"vni_ranges": "1:65536", "max_header_size": 38},
            "securitygroup": {"enable_security_group": "true"},
            "ovn": {
                "ovn_nb_connection": self.switches.central.urls["nb"],
                "ovn_sb_connection": self.switches.central.urls["sb"],
                "ovn_metadata_enabled": "false",
            },
        }

    def _environment(self, name: str) -> dict[str, str]:
        # Without an answer to how many workers it has, Neutron ignores all that OVN reports.
        return {"ASGI_WORKERS": "1"} if name == "neutron" else {}

    def start_agents(self) -> None:
        command = "neutron-ovn-maintenance-worker"
        files = ("--config-file", "etc/neutron/neutron.conf", "--config-file", "etc/neutron/ml2.ini")
        self.machine.start(command, [VENV / "bin" / command, *files])
        super().start_agents()


OVN = Networking(OvnMachines, OvnServices)
