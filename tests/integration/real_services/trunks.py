"""A server whose port is the parent of a trunk, on OVN: its guest has a VLAN, whose frames are those of a subport."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.functional.processes.own_process import until
from tests.integration.real_services.guests import GuestCloud
from tests.integration.real_services.ovn_metadata import VLAN_MODULES

_TAG = 100


class Trunk:
    """``parent``: the port to boot with. The subport is on a network of its own."""

    def __init__(self, cloud: GuestCloud, group: Any) -> None:
        self._cloud, self._switches = cloud, cloud.services.switches
        network = cloud.member.network
        self._network = network.create_network(name="vlans").id
        # A second DHCP server would lead the guest's questions for its metadata into the VLAN.
        network.create_subnet(network_id=self._network, ip_version=4, cidr="10.44.0.0/24", is_dhcp_enabled=False)
        self.parent = network.create_port(network_id=cloud.network, security_groups=[group.id])
        self._subport = network.create_port(network_id=self._network, security_groups=[group.id])
        (fixed,) = self._subport.fixed_ips
        self._address = fixed["ip_address"]
        tagged = {"port_id": self._subport.id, "segmentation_type": "vlan", "segmentation_id": _TAG}
        self._trunk = network.create_trunk(port_id=self.parent.id, sub_ports=[tagged])

    def script(self) -> str:
        """What the guest does for it. In a live migration QEMU before 8.2 loses which VLANs a guest wants to hear, unless it
        hears everything."""
        return f"""\
for module in {" ".join(VLAN_MODULES)}; do insmod /lib/$module.ko; done
ip link set eth0 promisc on
ip link add link eth0 name vlan{_TAG} type vlan id {_TAG}
ip link set vlan{_TAG} address {self._subport.mac_address} up
ip addr add {self._address}/24 dev vlan{_TAG}
"""

    def hears(self) -> dict[str, bool]:
        """Whom the guest answers in its VLAN: somebody on the subport's network, in none of its groups, on each host."""
        where = (self._cloud.admin, self._network, self._address)
        return {host: self._switches.ping(host, *where, stranger=True).answered for host in self._cloud.hosts}

    def is_on(self, host: str) -> None:
        """The subport is where its parent is, and Neutron says that all of it is up."""
        admin = self._cloud.admin
        for port in (self.parent, self._subport):
            wired = partial(self._switches.wires, host, admin, port.id)
            until(wired, bool, f"port {port.id} to be wired on {host}")
            until(partial(self._status, port), lambda seen: seen == "ACTIVE", f"Neutron to say so of port {port.id}")
        until(lambda: admin.network.get_trunk(self._trunk.id).status, lambda seen: seen == "ACTIVE", "the trunk")
        until(self.hears, lambda seen: all(seen.values()), "the guest to answer in its VLAN")

    def _status(self, port: Any) -> str:
        return str(self._cloud.admin.network.get_port(port.id).status)
