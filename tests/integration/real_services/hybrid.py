"""Neutron's Open vSwitch agents with the firewall driver ``iptables_hybrid``: rules on a bridge of each port's own."""

from __future__ import annotations

from tests.integration.real_services.guests import Networking, ServicesWithAgents
from tests.integration.real_services.machine import Machine
from tests.integration.real_services.machines import Machines, run
from tests.integration.real_services.switches import Switches


class HybridSwitches(Switches):
    """Every second host has an integration bridge of another name."""

    def __init__(self, machines: Machines, machine: Machine, queue: str) -> None:
        super().__init__(machines, machine, queue)
        self.bridges = dict.fromkeys(list(machines.addresses)[1::2], "br-hosts")

    def start(self, host: str) -> None:
        # The kernel must not answer guests' questions for the addresses of the host's own ports on their networks.
        run(*self._machines.inside(host), "sysctl", "-q", "-w", "net.ipv4.conf.all.arp_ignore=1")
        super().start(host)

    def _agent(self, host: str) -> dict[str, dict[str, object]]:
        firewall: dict[str, object] = {
            "enable_security_group": "true",
            "firewall_driver": "iptables_hybrid",
            "enable_ipset": "false",
        }
        return {**super()._agent(host), "securitygroup": firewall}

    def settle(self, host: str) -> None:
        """That is about flows, in which the agents' other firewall consists."""


class HybridServices(ServicesWithAgents):
    def _make_switches(self, machines: Machines, queue: str) -> Switches:
        return HybridSwitches(machines, self.machine, queue)


HYBRID = Networking(Machines, HybridServices)
