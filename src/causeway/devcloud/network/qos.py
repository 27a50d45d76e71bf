"""/v2.0/qos/policies: guarantees for ports, and the resource requests that follow from them.

Rules: `minimum_bandwidth_rules` (`min_kbps`), `minimum_packet_rate_rules` (`min_kpps`), and `bandwidth_limit_rules`, which
request nothing. In a real cloud the network agents make the providers for such requests; here, tests make them through
Placement's API. Source: Network API reference, "Quality of Service"; Networking administration guide, "QoS: Guaranteed Minimum
Bandwidth" and "... Packet Rate".
"""

from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import select
from sqlalchemy.orm import Session
from sqlalchemy.orm.util import identity_key

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import conflict, forbidden, not_found
from causeway.devcloud.network import attributes
from causeway.devcloud.network.listing import collection, one
from causeway.devcloud.tables.base import new_id
from causeway.devcloud.tables.network import Network, Port, QosAssociation, QosPolicy
from causeway.devcloud.web import Call

BANDWIDTH, PACKET_RATE, LIMIT = "minimum_bandwidth", "minimum_packet_rate", "bandwidth_limit"
# rule type -> the attribute with its amount
AMOUNTS = {BANDWIDTH: "min_kbps", PACKET_RATE: "min_kpps", LIMIT: "max_kbps"}
DIRECTIONS = ("ingress", "egress", "any")
RESOURCES = {
    (BANDWIDTH, "egress"): "NET_BW_EGR_KILOBIT_PER_SEC",
    (BANDWIDTH, "ingress"): "NET_BW_IGR_KILOBIT_PER_SEC",
    (PACKET_RATE, "egress"): "NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC",
    (PACKET_RATE, "ingress"): "NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC",
    (PACKET_RATE, "any"): "NET_PACKET_RATE_KILOPACKET_PER_SEC",
}
KNOWN = frozenset(("name", "description", "shared", "project_id", "tenant_id", "is_default"))
TUNNEL = "CUSTOM_NETWORK_TUNNEL_PROVIDER"
# In the session's `info`: whether it has seen all associations.
_ALL_SEEN = "qos_associations_seen"


def view(row: QosPolicy) -> Json:
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "project_id": row.project_id,
        "tenant_id": row.project_id,
        "shared": row.shared,
        "is_default": False,
        "rules": row.rules,
        "tags": [],
        "revision_number": 1,
    }


def find(call: Call, policy_id: Any) -> QosPolicy:
    row = call.session.get(QosPolicy, policy_id) if isinstance(policy_id, str) else None
    if row is None or not (row.shared or call.caller.owns(row.project_id)):
        raise not_found(f"QoS policy {policy_id} could not be found.", "QosPolicyNotFound")
    return row


def list_policies(call: Call) -> Json:
    rows = call.session.scalars(select(QosPolicy).order_by(QosPolicy.name))
    seen = [view(row) for row in rows if row.shared or call.caller.owns(row.project_id)]
    return collection(call, "policies", seen)


def show(call: Call, policy_id: str) -> Json:
    return one(call, "policy", view(find(call, policy_id)))


def create(call: Call) -> Json:
    _require_privileged(call)
    given = call.body("policy")
    attributes.refuse_unknown(given, KNOWN)
    row = QosPolicy(
        id=new_id(),
        project_id=attributes.project_of(call, given),
        name=attributes.text("name", given.get("name") or ""),
        description=attributes.text("description", given.get("description") or ""),
        shared=attributes.boolean("shared", given.get("shared") or False),
        rules=[],
    )
    call.session.add(row)
    return {"policy": view(row)}


def delete(call: Call, policy_id: str) -> None:
    _require_privileged(call)
    row = find(call, policy_id)
    used = select(QosAssociation.resource_id).where(QosAssociation.policy_id == row.id)
    if call.session.scalars(used).first() is not None:
        raise conflict(f"QoS Policy {row.id} is used.", "QosPolicyInUse")
    call.session.delete(row)


def create_rule(call: Call, policy_id: str, kind: str) -> Json:
    _require_privileged(call)
    row, given = find(call, policy_id), call.body(f"{kind}_rule")
    direction = given.get("direction") or "egress"
    rule = {
        "id": new_id(),
        "type": kind,
        "qos_policy_id": row.id,
        AMOUNTS[kind]: attributes.number(AMOUNTS[kind], given.get(AMOUNTS[kind])),
        "direction": attributes.one_of("direction", direction, DIRECTIONS),
    }
    if any((other["type"], other["direction"]) == (kind, direction) for other in row.rules):
        raise conflict(f"Rule {kind} of direction {direction} is in policy {row.id} already.", "QoSRulesConflict")
    row.rules = [*row.rules, rule]
    return {f"{kind}_rule": {name: value for name, value in rule.items() if name not in ("type", "qos_policy_id")}}


def delete_rule(call: Call, policy_id: str, rule_id: str) -> None:
    _require_privileged(call)
    row = find(call, policy_id)
    if all(rule["id"] != rule_id for rule in row.rules):
        raise not_found(f"QoS rule {rule_id} for policy {row.id} could not be found.", "QosRuleNotFound")
    row.rules = [rule for rule in row.rules if rule["id"] != rule_id]


def policy_of(call: Call, resource_id: str) -> str | None:
    row = _association(call.session, resource_id)
    return row.policy_id if row is not None else None


def _association(session: Session, resource_id: str) -> QosAssociation | None:
    """The association of a port or network. Most have none, and this is read with every view of a port.

    The session keeps each row that it has read. Once it has read all of them, a row that it does not have does not exist.
    """
    if not session.info.get(_ALL_SEEN):
        session.scalars(select(QosAssociation)).all()
        session.info[_ALL_SEEN] = True
    return session.identity_map.get(identity_key(QosAssociation, resource_id))


def associate(call: Call, resource_id: str, policy_id: Any) -> None:
    """Sets the policy of a port or network; None removes it."""
    present = _association(call.session, resource_id)
    if present is not None:
        call.session.delete(present)
        call.session.flush()
    if policy_id is not None:
        call.session.add(QosAssociation(resource_id=resource_id, policy_id=find(call, policy_id).id))
        call.session.flush()


def resource_request(call: Call, port: Port) -> Json | None:
    """The port's resource request, by its own policy or its network's."""
    policy_id = policy_of(call, port.id) or policy_of(call, port.network_id)
    policy = call.session.get(QosPolicy, policy_id) if policy_id is not None else None
    if policy is None:
        return None
    network = call.session.get_one(Network, port.network_id)
    vnic_type = f"CUSTOM_VNIC_TYPE_{port.vnic_type.upper().replace('-', '_')}"
    physical = f"CUSTOM_PHYSNET_{network.physical_network.upper()}" if network.physical_network else TUNNEL
    groups = [
        _group(port, policy, BANDWIDTH, [physical, vnic_type]),
        _group(port, policy, PACKET_RATE, [vnic_type]),
    ]
    asked = [group for group in groups if group["resources"]]
    if not asked:
        return None
    if not call.cloud.port_resource_request_groups:
        return {"required": asked[0]["required"], "resources": asked[0]["resources"]}
    return {"request_groups": asked, "same_subtree": [group["id"] for group in asked]}


def _group(port: Port, policy: QosPolicy, kind: str, required: list[str]) -> Json:
    amounts = {
        RESOURCES[kind, rule["direction"]]: rule[AMOUNTS[kind]]
        for rule in policy.rules
        if rule["type"] == kind and (kind, rule["direction"]) in RESOURCES and rule[AMOUNTS[kind]]
    }
    return {"id": str(uuid5(UUID(port.id), kind)), "required": required, "resources": amounts}


def _require_privileged(call: Call) -> None:
    if not call.caller.is_privileged:
        raise forbidden("Only an administrator may change QoS policies.")
