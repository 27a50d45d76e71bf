"""One Neutron with both: Open vSwitch's agents on the hosts of the first cell, OVN on the others.

Networks are of a kind that both have: VLANs of the provider network. A port is bound by the driver that serves its host.
"""

from __future__ import annotations

from typing import Any

from tests.integration.real_services.configuration import Options
from tests.integration.real_services.guests import Networking
from tests.integration.real_services.machine import Machine
from tests.integration.real_services.machines import Machines
from tests.integration.real_services.ovn import Central, OvnMachines, OvnServices, OvnSwitches
from tests.integration.real_services.switches import Switches

_FIRST_CELL = "cell1"


class MixedSwitches(OvnSwitches):
    """``agents``: of the hosts that have one of Neutron's."""

    def __init__(self, machines: OvnMachines, machine: Machine, central: Central, queue: str) -> None:
        super().__init__(machines, machine, central)
        self._agents = Switches(machines, machine, queue)

    def _prepare_agent(self, host: str) -> None:
        if not _has_agent(host):
            super()._prepare_agent(host)

    def start_agent(self, host: str) -> None:
        if _has_agent(host):
            self._agents.start_agent(host)
        else:
            super().start_agent(host)

    def agent(self, host: str) -> str:
        return self._agents.agent(host) if _has_agent(host) else super().agent(host)

    def wires(self, host: str, admin: Any, port_id: str) -> bool:
        return (self._agents.wires if _has_agent(host) else super().wires)(host, admin, port_id)

    def settle(self, host: str) -> None:
        if _has_agent(host):
            self._agents.settle(host)

    def state(self, host: str) -> str:
        return self._agents.state(host) if _has_agent(host) else super().state(host)


class MixedServices(OvnServices):
    def _make_switches(self, machines: Machines, queue: str) -> Switches:
        assert isinstance(machines, OvnMachines)
        return MixedSwitches(machines, self.machine, Central(self.machine, machines.address), queue)

    def _neutron(self) -> Options:
        options = super()._neutron()
        return {**options, "DEFAULT": {**options["DEFAULT"], "service_plugins": "qos"}}

    def _ml2(self) -> Options:
        options = super()._ml2()
        both = {"mechanism_drivers": "openvswitch,ovn", "tenant_network_types": "vlan"}
        return {**options, "ml2": {**options["ml2"], **both}}


def _has_agent(host: str) -> bool:
    return host.startswith(_FIRST_CELL)


MIXED = Networking(OvnMachines, MixedServices)
