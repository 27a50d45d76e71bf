"""/v2.0/networks."""

from typing import Any

from sqlalchemy import func, select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import conflict, forbidden, not_found
from causeway.devcloud.network import attributes, qos
from causeway.devcloud.network.listing import collection, one, stamp
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.network import Network, Port
from causeway.devcloud.web import Call

FIRST_SEGMENTATION_ID = 1001
MTU = 1450
ADMIN_ONLY = (
    "shared",
    "router:external",
    "provider:network_type",
    "provider:segmentation_id",
    "provider:physical_network",
)
SETTABLE = {
    "name": "name",
    "description": "description",
    "dns_domain": "dns_domain",
    "admin_state_up": "admin_state_up",
    "shared": "shared",
    "router:external": "external",
    "port_security_enabled": "port_security_enabled",
}
KNOWN = frozenset(
    (
        *SETTABLE,
        *("id", "mtu", "project_id", "tenant_id", "availability_zone_hints", "qos_policy_id", "is_default", "segments"),
        *("provider:network_type", "provider:physical_network", "provider:segmentation_id", "vlan_transparent"),
        "vlan_qinq",
    )
)


def view(call: Call, row: Network) -> Json:
    body: Json = {
        "id": row.id,
        "name": row.name,
        "tenant_id": row.project_id,
        "project_id": row.project_id,
        "admin_state_up": row.admin_state_up,
        "status": "ACTIVE",
        "shared": row.shared,
        "router:external": row.external,
        "mtu": row.mtu,
        "port_security_enabled": row.port_security_enabled,
        "subnets": [subnet.id for subnet in row.subnets],
        "availability_zone_hints": row.availability_zone_hints,
        "availability_zones": ["nova"],
        "ipv4_address_scope": None,
        "ipv6_address_scope": None,
        "dns_domain": row.dns_domain,
        "qos_policy_id": qos.policy_of(call, row.id),
        "is_default": False,
        "l2_adjacency": True,
        "description": row.description,
        "tags": row.tags,
        "created_at": stamp(row.created_at),
        "updated_at": stamp(row.updated_at),
        "revision_number": row.revision,
    }
    if call.caller.is_privileged:
        body["provider:network_type"] = row.network_type
        body["provider:physical_network"] = row.physical_network
        body["provider:segmentation_id"] = row.segmentation_id
    return body


def may_see(call: Call, row: Network) -> bool:
    return row.shared or row.external or call.caller.owns(row.project_id)


def find(call: Call, network_id: Any) -> Network:
    """A network that the caller may see; ApiError 404 otherwise."""
    row = call.session.get(Network, network_id) if isinstance(network_id, str) else None
    if row is None or not may_see(call, row):
        raise not_found(f"Network {network_id} could not be found.", "NetworkNotFound")
    return row


def find_own(call: Call, network_id: str) -> Network:
    row = find(call, network_id)
    if not call.caller.owns(row.project_id):
        raise forbidden("The network belongs to another project.")
    return row


def list_networks(call: Call) -> Json:
    query = select(Network).order_by(Network.created_at)
    for name in ("id", "name"):
        value = call.request.params.get(name)
        if isinstance(value, str):
            query = query.where(getattr(Network, name) == value)
    rows = [row for row in call.session.scalars(query) if may_see(call, row)]
    return collection(call, "networks", [view(call, row) for row in rows])


def show(call: Call, network_id: str) -> Json:
    return one(call, "network", view(call, find(call, network_id)))


def create(call: Call) -> Json:
    document = call.body()
    if "networks" in document:
        given_list = attributes.objects("networks", document["networks"])
        return {"networks": [view(call, _make(call, given)) for given in given_list]}
    return {"network": view(call, _make(call, call_object(document, "network")))}


def call_object(document: Json, key: str) -> Json:
    return attributes.mapping(key, document.get(key))


def _make(call: Call, given: Json) -> Network:
    attributes.refuse_unknown(given, KNOWN)
    row = Network(
        project_id=attributes.project_of(call, given),
        name="",
        description="",
        dns_domain="",
        tags=[],
        admin_state_up=True,
        shared=False,
        external=False,
        port_security_enabled=True,
        mtu=attributes.number("mtu", given.get("mtu") or MTU, 68, 65535),
        network_type="vxlan",
        availability_zone_hints=attributes.texts("availability_zone_hints", given.get("availability_zone_hints")),
    )
    _set(call, row, given)
    if given.get("provider:network_type"):
        row.network_type = attributes.text("provider:network_type", given["provider:network_type"])
    row.physical_network = given.get("provider:physical_network")
    row.segmentation_id = _segmentation_id(call, given)
    call.session.add(row)
    call.session.flush()
    if given.get("qos_policy_id"):
        qos.associate(call, row.id, given["qos_policy_id"])
    call.after_commit.append(call.cloud.plugger.notice_change)
    return row


def _segmentation_id(call: Call, given: Json) -> int:
    if given.get("provider:segmentation_id") is not None:
        wanted = attributes.number("provider:segmentation_id", given["provider:segmentation_id"], 1, 16777215)
        if call.session.scalars(select(Network).where(Network.segmentation_id == wanted)).first() is not None:
            raise conflict(f"The segment {wanted} is in use.", "TunnelIdInUse")
        return wanted
    highest = call.session.scalar(select(func.max(Network.segmentation_id)))
    return max((highest or 0) + 1, FIRST_SEGMENTATION_ID)


def _set(call: Call, row: Network, given: Json) -> None:
    for name in ADMIN_ONLY:
        if given.get(name) and not call.caller.is_privileged:
            raise forbidden(f"Only an administrator may set {name}.")
    for name, attribute in SETTABLE.items():
        if name not in given or given[name] is None:
            continue
        check = attributes.text if attribute in ("name", "description", "dns_domain") else attributes.boolean
        setattr(row, attribute, check(name, given[name]))


def update(call: Call, network_id: str) -> Json:
    row = find_own(call, network_id)
    given = call.body("network")
    attributes.refuse_unknown(given, KNOWN)
    _set(call, row, given)
    if given.get("mtu"):
        row.mtu = attributes.number("mtu", given["mtu"], 68, 65535)
    if "qos_policy_id" in given:
        qos.associate(call, row.id, given["qos_policy_id"])
    row.revision += 1
    row.updated_at = now()
    call.after_commit.append(call.cloud.plugger.notice_change)
    return {"network": view(call, row)}


def delete(call: Call, network_id: str) -> None:
    row = find_own(call, network_id)
    if call.session.scalars(select(Port.id).where(Port.network_id == row.id)).first() is not None:
        raise conflict(
            f"Unable to complete operation on network {row.id}. There are one or more ports still in use on the network.",
            "NetworkInUse",
        )
    for subnet in list(row.subnets):
        call.session.delete(subnet)
    qos.associate(call, row.id, None)
    call.session.flush()
    call.session.delete(row)
    call.after_commit.append(call.cloud.plugger.notice_change)
