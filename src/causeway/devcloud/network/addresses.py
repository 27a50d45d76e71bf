"""Chooses fixed IPs and MACs for ports."""

import secrets
from ipaddress import ip_address, ip_network
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from causeway.devcloud.errors import ApiError, bad_request, conflict
from causeway.devcloud.network import attributes
from causeway.devcloud.tables.network import FixedIp, Network, Port, Subnet

MAC_PREFIX = "fa:16:3e"


def new_mac(session: Session, network_id: str) -> str:
    while True:
        mac = MAC_PREFIX + "".join(f":{each:02x}" for each in secrets.token_bytes(3))
        if not mac_in_use(session, network_id, mac):
            return mac


def mac_in_use(session: Session, network_id: str, mac: str) -> bool:
    query = select(Port.id).where(Port.network_id == network_id, Port.mac_address == mac)
    return session.scalars(query).first() is not None


def allot(session: Session, network: Network, wanted: Any, kept: list[FixedIp]) -> list[FixedIp]:
    """The fixed IPs of a port: the requested ones, or one from the first subnet of each IP version.

    Addresses of `kept` (the port's present ones) that are requested again keep their rows.
    """
    if wanted is None:
        return [_free(session, subnet) for subnet in _default_subnets(network)]
    found: list[FixedIp] = []
    for position, each in enumerate(attributes.objects("fixed_ips", wanted)):
        row = _one(session, network, each, kept, found)
        row.position = position
        found.append(row)
    return found


def _default_subnets(network: Network) -> list[Subnet]:
    by_version: dict[int, Subnet] = {}
    for subnet in network.subnets:
        by_version.setdefault(subnet.ip_version, subnet)
    return list(by_version.values())


def _one(
    session: Session, network: Network, wanted: dict[str, Any], kept: list[FixedIp], found: list[FixedIp]
) -> FixedIp:
    subnet_id, address = wanted.get("subnet_id"), wanted.get("ip_address")
    if subnet_id is None and address is None:
        raise bad_request("A fixed IP needs a subnet_id, an ip_address or both.")
    subnets = [row for row in network.subnets if subnet_id in (None, row.id)]
    if not subnets:
        raise bad_request(f"Failed to create port on network {network.id}: {subnet_id} is not one of its subnets.")
    if address is None:
        for row in kept:
            if row.subnet_id == subnet_id and row not in found:
                return row
        return _free(session, subnets[0], {row.ip_address for row in found})
    address = attributes.address("ip_address", address)
    for subnet in subnets:
        if ip_address(address) in ip_network(subnet.cidr):
            break
    else:
        raise bad_request(f"IP address {address} is not a valid IP for the specified subnet.", "InvalidIpForSubnet")
    for row in kept:
        if row.subnet_id == subnet.id and row.ip_address == address:
            return row
    if session.get(FixedIp, (subnet.id, address)) is not None or any(row.ip_address == address for row in found):
        raise conflict(f"IP address {address} already allocated in subnet {subnet.id}", "IpAddressAlreadyAllocated")
    return FixedIp(subnet_id=subnet.id, ip_address=address)


def _free(session: Session, subnet: Subnet, taken_too: set[str] | None = None) -> FixedIp:
    taken = set(session.scalars(select(FixedIp.ip_address).where(FixedIp.subnet_id == subnet.id)))
    taken |= taken_too or set()
    for pool in subnet.allocation_pools:
        kind = type(ip_address(pool["start"]))
        for value in range(int(ip_address(pool["start"])), int(ip_address(pool["end"])) + 1):
            if (candidate := str(kind(value))) not in taken:
                return FixedIp(subnet_id=subnet.id, ip_address=candidate, position=0)
    raise ApiError(409, f"No more IP addresses available on network {subnet.network_id}.", "IpAddressGenerationFailure")
