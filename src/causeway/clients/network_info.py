"""Converts the network service's ports into a server's network info."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from causeway.clients.network_migrations import without_migration
from causeway.model.network import FixedIp, Vif

Json = dict[str, Any]

# Fields of the network that a host needs for plugging. Only services with the provider extension show them, to administrators.
PROVIDER_ATTRIBUTES = {
    "provider:segmentation_id": "segmentation_id",
    "provider:network_type": "network_type",
    "provider:physical_network": "physical_network",
}


@dataclass(frozen=True)
class Around:
    """What ports refer to, by id."""

    networks: Mapping[str, Json]
    subnets: Mapping[str, Json]
    security_groups: Mapping[str, Json]


def order_ports(ports: list[Json], known: list[str]) -> list[Json]:
    """Ports in the order of ``known``; new ones after them, the oldest first."""
    places = {port_id: place for place, port_id in enumerate(known)}
    return sorted(ports, key=lambda port: (places.get(port["id"], len(places)), port.get("created_at") or ""))


def group_names(port: Mapping[str, Any], groups: Mapping[str, Json]) -> list[str]:
    """The names of a port's known security groups. A group without a name is shown by its id, as in Nova."""
    ids = port.get("security_groups") or []
    return [groups[each].get("name") or each for each in ids if each in groups]


def vif_of(port: Mapping[str, Any], around: Around, floating_ips: Mapping[tuple[str, str], list[str]]) -> Vif:
    """``floating_ips``: by (port id, fixed address)."""
    network = around.networks.get(port["network_id"], {})
    details = dict(port.get("binding:vif_details") or {})
    for attribute, name in PROVIDER_ATTRIBUTES.items():
        if network.get(attribute) is not None:
            details[name] = network[attribute]
    return Vif(
        id=port["id"],
        address=port["mac_address"],
        network_id=port["network_id"],
        network_label=network.get("name") or "",
        fixed_ips=[
            _fixed_ip(ip, around.subnets.get(ip["subnet_id"], {}), floating_ips.get((port["id"], ip["ip_address"]), []))
            for ip in port.get("fixed_ips") or []
        ],
        mtu=network.get("mtu") or Vif.mtu,
        vnic_type=port.get("binding:vnic_type") or "normal",
        vif_type=port.get("binding:vif_type"),
        details=details,
        # Where a guest is going is nothing that another binding may keep.
        profile=without_migration(dict(port.get("binding:profile") or {})),
        active=port.get("status") == "ACTIVE",
        security_groups=group_names(port, around.security_groups),
    )


def _fixed_ip(ip: Mapping[str, Any], subnet: Mapping[str, Any], floating_ips: list[str]) -> FixedIp:
    return FixedIp(
        address=ip["ip_address"],
        subnet_id=ip["subnet_id"],
        version=subnet.get("ip_version") or (6 if ":" in ip["ip_address"] else 4),
        cidr=subnet.get("cidr") or "",
        gateway=subnet.get("gateway_ip"),
        dns=list(subnet.get("dns_nameservers") or []),
        floating_ips=list(floating_ips),
        dhcp=subnet.get("enable_dhcp"),
        ipv6_address_mode=subnet.get("ipv6_address_mode"),
        routes=[
            {name: route[name] for name in ("destination", "nexthop")} for route in subnet.get("host_routes") or []
        ],
    )
