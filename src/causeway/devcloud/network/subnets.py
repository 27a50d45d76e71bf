"""/v2.0/subnets."""

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, conflict, forbidden, not_found
from causeway.devcloud.network import attributes, networks
from causeway.devcloud.network.listing import collection, one, stamp
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.network import FixedIp, Subnet
from causeway.devcloud.web import Call

KNOWN = frozenset(
    (
        *("name", "description", "network_id", "cidr", "ip_version", "gateway_ip", "enable_dhcp", "allocation_pools"),
        *("dns_nameservers", "host_routes", "project_id", "tenant_id", "ipv6_address_mode", "ipv6_ra_mode"),
        *(
            "subnetpool_id",
            "prefixlen",
            "service_types",
            "dns_publish_fixed_ip",
            "segment_id",
            "use_default_subnetpool",
        ),
    )
)


def view(row: Subnet) -> Json:
    return {
        "id": row.id,
        "name": row.name,
        "tenant_id": row.project_id,
        "project_id": row.project_id,
        "network_id": row.network_id,
        "ip_version": row.ip_version,
        "cidr": row.cidr,
        "gateway_ip": row.gateway_ip,
        "enable_dhcp": row.enable_dhcp,
        "allocation_pools": row.allocation_pools,
        "dns_nameservers": row.dns_nameservers,
        "host_routes": row.host_routes,
        "ipv6_address_mode": row.ipv6_address_mode,
        "ipv6_ra_mode": row.ipv6_ra_mode,
        "subnetpool_id": None,
        "segment_id": None,
        "service_types": [],
        "dns_publish_fixed_ip": False,
        "description": row.description,
        "tags": row.tags,
        "created_at": stamp(row.created_at),
        "updated_at": stamp(row.updated_at),
        "revision_number": row.revision,
    }


def find(call: Call, subnet_id: Any) -> Subnet:
    row = call.session.get(Subnet, subnet_id) if isinstance(subnet_id, str) else None
    if row is None or not networks.may_see(call, row.network):
        raise not_found(f"Subnet {subnet_id} could not be found.", "SubnetNotFound")
    return row


def find_own(call: Call, subnet_id: str) -> Subnet:
    row = find(call, subnet_id)
    if not call.caller.owns(row.project_id):
        raise forbidden("The subnet belongs to another project.")
    return row


def list_subnets(call: Call) -> Json:
    rows = call.session.scalars(select(Subnet).order_by(Subnet.created_at))
    return collection(call, "subnets", [view(row) for row in rows if networks.may_see(call, row.network)])


def show(call: Call, subnet_id: str) -> Json:
    return one(call, "subnet", view(find(call, subnet_id)))


def create(call: Call) -> Json:
    document = call.body()
    if "subnets" in document:
        return {"subnets": [view(_make(call, given)) for given in attributes.objects("subnets", document["subnets"])]}
    return {"subnet": view(_make(call, networks.call_object(document, "subnet")))}


def _make(call: Call, given: Json) -> Subnet:
    attributes.refuse_unknown(given, KNOWN)
    network = networks.find(call, given.get("network_id"))
    if not call.caller.owns(network.project_id):
        raise forbidden("Subnets are made by the network's own project.")
    cidr = _cidr(given)
    for other in network.subnets:
        if ip_network(other.cidr).overlaps(cidr):
            raise bad_request(f"The cidr {cidr} overlaps with subnet {other.id} of the network.")
    gateway: str | None = str(cidr.network_address + 1)
    if "gateway_ip" in given:
        gateway = attributes.address("gateway_ip", given["gateway_ip"]) if given["gateway_ip"] is not None else None
    row = Subnet(
        name=attributes.text("name", given.get("name") or ""),
        description=attributes.text("description", given.get("description") or ""),
        project_id=network.project_id,
        network_id=network.id,
        ip_version=cidr.version,
        cidr=str(cidr),
        gateway_ip=gateway,
        enable_dhcp=attributes.boolean("enable_dhcp", given.get("enable_dhcp", True)),
        allocation_pools=_pools(cidr, gateway, given.get("allocation_pools")),
        dns_nameservers=[
            attributes.address("dns_nameservers", each)
            for each in attributes.texts("dns_nameservers", given.get("dns_nameservers"))
        ],
        host_routes=attributes.objects("host_routes", given.get("host_routes")),
        ipv6_address_mode=given.get("ipv6_address_mode"),
        ipv6_ra_mode=given.get("ipv6_ra_mode"),
        tags=[],
    )
    network.subnets.append(row)
    call.session.flush()
    call.after_commit.append(call.cloud.plugger.notice_change)
    return row


def _cidr(given: Json) -> IPv4Network | IPv6Network:
    try:
        cidr = ip_network(str(given.get("cidr")), strict=False)
    except ValueError as error:
        raise bad_request(f"Invalid input for cidr. Reason: '{given.get('cidr')}' is not a valid IP subnet.") from error
    if attributes.number("ip_version", given.get("ip_version", cidr.version)) != cidr.version:
        raise bad_request(f"The ip_version does not match the cidr {cidr}.")
    if cidr.num_addresses < 4:
        raise bad_request(f"The cidr {cidr} is too small to hold a gateway and ports.")
    return cidr


def _pools(cidr: IPv4Network | IPv6Network, gateway: str | None, given: Any) -> list[Any]:
    if given:
        pools = []
        for pool in attributes.objects("allocation_pools", given):
            start = attributes.address("allocation_pools", pool.get("start"))
            end = attributes.address("allocation_pools", pool.get("end"))
            inside = ip_address(start) in cidr and ip_address(end) in cidr
            if not inside or int(ip_address(start)) > int(ip_address(end)):
                raise bad_request(f"The allocation pool {start}-{end} is not within {cidr}.")
            pools.append({"start": start, "end": end})
        return pools
    first = int(cidr.network_address) + 1
    last = int(cidr.broadcast_address) - (1 if cidr.version == 4 else 0)
    kind = type(cidr.network_address)
    taken = int(ip_address(gateway)) if gateway and ip_address(gateway) in cidr else None
    if taken is None:
        ranges = [(first, last)]
    else:
        ranges = [(first, taken - 1), (taken + 1, last)]
    return [{"start": str(kind(start)), "end": str(kind(end))} for start, end in ranges if start <= end]


def update(call: Call, subnet_id: str) -> Json:
    row = find_own(call, subnet_id)
    given = call.body("subnet")
    attributes.refuse_unknown(given, KNOWN)
    for name in ("name", "description"):
        if given.get(name) is not None:
            setattr(row, name, attributes.text(name, given[name]))
    if "enable_dhcp" in given:
        row.enable_dhcp = attributes.boolean("enable_dhcp", given["enable_dhcp"])
    if "dns_nameservers" in given:
        row.dns_nameservers = attributes.texts("dns_nameservers", given["dns_nameservers"])
    if "host_routes" in given:
        row.host_routes = attributes.objects("host_routes", given["host_routes"])
    if "gateway_ip" in given:
        gateway = given["gateway_ip"]
        row.gateway_ip = attributes.address("gateway_ip", gateway) if gateway is not None else None
    if given.get("allocation_pools"):
        row.allocation_pools = _pools(ip_network(row.cidr), row.gateway_ip, given["allocation_pools"])
    row.revision += 1
    row.updated_at = now()
    call.after_commit.append(call.cloud.plugger.notice_change)
    return {"subnet": view(row)}


def delete(call: Call, subnet_id: str) -> None:
    row = find_own(call, subnet_id)
    if call.session.scalars(select(FixedIp).where(FixedIp.subnet_id == row.id)).first() is not None:
        raise conflict(
            f"Unable to complete operation on subnet {row.id}: One or more ports have an IP allocation from this subnet.",
            "SubnetInUse",
        )
    row.network.subnets.remove(row)
    call.session.delete(row)
    call.after_commit.append(call.cloud.plugger.notice_change)
