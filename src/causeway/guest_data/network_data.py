"""Makes ``network_data.json``: links, the networks on them, and name servers."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from causeway.model.network import FixedIp, Vif

Json = dict[str, Any]

# These VIF types are shown as they are; all others as "phy".
_SHOWN_TYPES = frozenset({"bridge", "dvs", "hostdev_physical", "hw_veb", "hyperv", "ovs", "tap", "vhostuser", "vif"})


def network_data(vifs: list[Vif]) -> Json:
    links: list[Json] = []
    networks: list[Json] = []
    services: list[Json] = []
    for vif in vifs:
        links.append(_link(vif))
        for ip in _addresses_shown(vif):
            networks.append(_network(vif, ip, len(networks)))
            services += [service for service in _name_servers(ip) if service not in services]
    return {"links": links, "networks": networks, "services": services}


def _addresses_shown(vif: Vif) -> list[FixedIp]:
    """Returns the first address of each IP version: guests use one configuration per version and link."""
    first: dict[int, FixedIp] = {}
    for ip in vif.fixed_ips:
        first.setdefault(ip.version, ip)
    return [first[version] for version in sorted(first)]


def _link(vif: Vif) -> Json:
    return {
        "id": vif.devname,
        "vif_id": vif.id,
        "type": vif.vif_type if vif.vif_type in _SHOWN_TYPES else "phy",
        # A DHCP server announces it.
        "mtu": None if any(ip.has_dhcp for ip in vif.fixed_ips) else vif.mtu,
        "ethernet_mac_address": vif.address,
    }


def _network(vif: Vif, ip: FixedIp, number: int) -> Json:
    about = {"id": f"network{number}", "link": vif.devname, "network_id": vif.network_id}
    if ip.ipv6_address_mode:
        kind = f"ipv6_{ip.ipv6_address_mode}"
    elif ip.has_dhcp:
        return about | {"type": f"ipv{ip.version}_dhcp"}
    else:
        kind = f"ipv{ip.version}"
    return about | {
        "type": kind,
        "ip_address": ip.address,
        "netmask": _netmask(ip.cidr),
        "routes": _routes(ip),
        "services": _name_servers(ip),
    }


def _netmask(cidr: str) -> str | None:
    return str(ip_network(cidr, strict=False).netmask) if cidr else None


def _routes(ip: FixedIp) -> list[Json]:
    everywhere = "0.0.0.0" if ip.version == 4 else "::"  # noqa: S104  (a destination, not an address to listen at)
    routes = [{"network": everywhere, "netmask": everywhere, "gateway": ip.gateway}] if ip.gateway else []
    for route in ip.routes:
        to = ip_network(route["destination"], strict=False)
        routes.append({"network": str(to.network_address), "netmask": str(to.netmask), "gateway": route["nexthop"]})
    return routes


def _name_servers(ip: FixedIp) -> list[Json]:
    return [{"type": "dns", "address": address} for address in ip.dns]
