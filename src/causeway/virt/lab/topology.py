"""What the lab's network must serve: the networks, subnets and ports that the network service knows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


def default_segmentation_id(network_id: str) -> int:
    """The VXLAN network identifier (24 bits) of a network that has none of its own. It is the same on every host."""
    return int.from_bytes(hashlib.sha256(network_id.encode()).digest()[:3], "big") or 1


@dataclass
class SubnetTopology:
    """``dhcp_address``: the address of the subnet's DHCP server, without a prefix length."""

    cidr: str
    dhcp_address: str
    gateway: str | None = None
    dns: list[str] = field(default_factory=list)
    enable_dhcp: bool = True


@dataclass
class PortTopology:
    """One address of a port; a port with several addresses has several of these. ``host``: the host that it is bound to."""

    mac: str
    ip: str
    host: str | None = None


@dataclass
class NetworkOfLab:
    """``segmentation_id`` None: `default_segmentation_id` says it."""

    id: str
    segmentation_id: int | None = None
    mtu: int = 1450
    subnets: list[SubnetTopology] = field(default_factory=list)
    ports: list[PortTopology] = field(default_factory=list)


@dataclass
class NetworkTopology:
    networks: list[NetworkOfLab] = field(default_factory=list)
