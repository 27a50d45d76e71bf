"""Ports as servers see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from causeway.model.pci import InstancePCIRequest


@dataclass
class FixedIp:
    address: str
    subnet_id: str
    version: int = 4
    cidr: str = ""
    gateway: str | None = None
    dns: list[str] = field(default_factory=list)
    floating_ips: list[str] = field(default_factory=list)
    # Whether its subnet has DHCP. None if the network service did not say: then it is assumed.
    dhcp: bool | None = None
    ipv6_address_mode: str | None = None
    routes: list[dict[str, str]] = field(default_factory=list)

    @property
    def has_dhcp(self) -> bool:
        return self.dhcp is not False


@dataclass
class Plugging:
    """How a port is plugged at one host, as its binding there says."""

    vif_type: str | None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class Vif:
    """A port of a server as last seen (one entry of the network info)."""

    id: str
    address: str
    network_id: str
    network_label: str = ""
    fixed_ips: list[FixedIp] = field(default_factory=list)
    mtu: int = 1450
    vnic_type: str = "normal"
    vif_type: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)
    active: bool = False
    tag: str | None = None
    # True: the port was there before the server and outlives it.
    preserve_on_delete: bool = False
    # The names of its security groups (ids of groups without a name).
    security_groups: list[str] = field(default_factory=list)

    @property
    def devname(self) -> str:
        """Name of the tap device on the host (at most 15 characters, as the kernel demands)."""
        return ("tap" + self.id)[:14]


@dataclass
class RequestedNetwork:
    """One entry of ``networks`` in a create request, validated."""

    network_id: str | None = None
    port_id: str | None = None
    fixed_ip: str | None = None
    tag: str | None = None
    # Of a given port: the resources that it asks for, as the network service shows them.
    resource_request: dict[str, Any] | None = None
    # Of a given port: the device of its host that it needs.
    pci_request: InstancePCIRequest | None = None
