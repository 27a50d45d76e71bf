"""What the lab's network must serve: the networks, subnets and ports that the network service knows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


def default_segmentation_id(network_id: str) -> int:
    """A VXLAN network identifier (24 bits) for a network that was given none; the same on every host."""
    return int.from_bytes(hashlib.sha256(network_id.encode()).digest()[:3], "big") or 1


@dataclass
class SubnetTopology:
    """``dhcp_address`` is the address that the subnet keeps for its DHCP server (without a prefix length)."""

    cidr: str
    dhcp_address: str
    gateway: str | None = None
    dns: list[str] = field(default_factory=list)
    enable_dhcp: bool = True


@dataclass
class PortTopology:
    """One address of a port; a port with several has several of these. ``host`` is the host it is bound to, if it is."""

    mac: str
    ip: str
    host: str | None = None


@dataclass
class NetworkOfLab:
    """``segmentation_id`` None: one is derived from the id, as `default_segmentation_id` says."""

    id: str
    segmentation_id: int | None = None
    mtu: int = 1450
    subnets: list[SubnetTopology] = field(default_factory=list)
    ports: list[PortTopology] = field(default_factory=list)


@dataclass
class NetworkTopology:
    networks: list[NetworkOfLab] = field(default_factory=list)
