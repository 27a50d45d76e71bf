"""A floating IP of a server's port, through a router to an external network, and somebody on that network."""

from __future__ import annotations

from typing import Any

from causeway.virt.lab.network import ping_result
from tests.integration.real_services.guests import GuestCloud
from tests.integration.real_services.machines import run

_COUNT = 3


class External:
    """This machine is on the external network: the provider network, untagged. The project's router leads to it."""

    def __init__(self, cloud: GuestCloud) -> None:
        self._cloud = cloud
        prefix = cloud.machines.join_provider()
        physical = {"provider_network_type": "flat", "provider_physical_network": "physical"}
        admin, member = cloud.admin.network, cloud.member.network
        self._network = admin.create_network(name="external", is_router_external=True, **physical)
        pool = [{"start": f"{prefix}.10", "end": f"{prefix}.99"}]
        subnet = {"ip_version": 4, "cidr": f"{prefix}.0/24", "gateway_ip": f"{prefix}.1", "allocation_pools": pool}
        admin.create_subnet(network_id=self._network.id, is_dhcp_enabled=False, **subnet)
        gateway = {"network_id": self._network.id}
        router = member.create_router(name="router", external_gateway_info=gateway)
        (inside,) = member.get_network(cloud.network).subnet_ids
        member.add_interface_to_router(router, subnet_id=inside)

    def address_of(self, server: Any) -> str:
        """A floating IP of the server's port, from now on."""
        (port,) = self._cloud.member.network.ports(device_id=server.id)
        made = self._cloud.member.network.create_ip(floating_network_id=self._network.id, port_id=port.id)
        return str(made.floating_ip_address)

    def hears(self, address: str) -> bool:
        command = f"ping -n -q -i 0.2 -W 2 -c {_COUNT} {address} || [ $? = 1 ]"
        return ping_result(run("sh", "-c", command), _COUNT).answered
