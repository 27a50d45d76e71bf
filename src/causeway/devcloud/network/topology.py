"""The networks for the part that makes bridges and serves DHCP."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from causeway.devcloud.tables.network import Network, Port


@dataclass(frozen=True)
class SubnetTopology:
    id: str
    cidr: str
    gateway_ip: str | None
    enable_dhcp: bool
    dns_nameservers: tuple[str, ...]


@dataclass(frozen=True)
class PortTopology:
    """`ips`: (subnet id, address). `host`: of the active binding; None if unbound."""

    id: str
    mac: str
    ips: tuple[tuple[str, str], ...]
    host: str | None
    binding_hosts: tuple[str, ...]
    device_id: str
    device_owner: str
    status: str


@dataclass(frozen=True)
class NetworkTopology:
    id: str
    name: str
    segmentation_id: int | None
    mtu: int
    bridge_name: str
    subnets: tuple[SubnetTopology, ...]
    ports: tuple[PortTopology, ...]


def read_topology(session: Session) -> list[NetworkTopology]:
    ports: dict[str, list[PortTopology]] = {}
    for row in session.scalars(select(Port).order_by(Port.created_at)):
        ports.setdefault(row.network_id, []).append(_port(row))
    return [
        NetworkTopology(
            row.id,
            row.name,
            row.segmentation_id,
            row.mtu,
            "brq" + row.id[:11],
            tuple(
                SubnetTopology(each.id, each.cidr, each.gateway_ip, each.enable_dhcp, tuple(each.dns_nameservers))
                for each in row.subnets
            ),
            tuple(ports.get(row.id, ())),
        )
        for row in session.scalars(select(Network).order_by(Network.created_at))
    ]


def _port(row: Port) -> PortTopology:
    active = row.active_binding
    return PortTopology(
        row.id,
        row.mac_address,
        tuple((each.subnet_id, each.ip_address) for each in row.fixed_ips),
        (active.host or None) if active else None,
        tuple(each.host for each in row.bindings if each.host),
        row.device_id,
        row.device_owner,
        row.status,
    )
