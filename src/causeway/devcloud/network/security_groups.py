"""/v2.0/security-groups and /v2.0/security-group-rules: stored and shown. Nothing is filtered."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, conflict, not_found
from causeway.devcloud.network import attributes
from causeway.devcloud.network.listing import collection, one, stamp
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.network import Port, SecurityGroup, SecurityGroupRule
from causeway.devcloud.web import Call


def rule_view(row: SecurityGroupRule) -> Json:
    return {
        "id": row.id,
        "tenant_id": row.project_id,
        "project_id": row.project_id,
        "security_group_id": row.security_group_id,
        "direction": row.direction,
        "ethertype": row.ethertype,
        "protocol": row.protocol,
        "port_range_min": row.port_range_min,
        "port_range_max": row.port_range_max,
        "remote_ip_prefix": row.remote_ip_prefix,
        "normalized_cidr": row.remote_ip_prefix,
        "remote_group_id": row.remote_group_id,
        "remote_address_group_id": None,
        "belongs_to_default_sg": False,
        "description": row.description,
        "created_at": stamp(row.created_at),
        "updated_at": stamp(row.updated_at),
        "revision_number": 0,
        "tags": [],
    }


def view(row: SecurityGroup) -> Json:
    return {
        "id": row.id,
        "name": row.name,
        "tenant_id": row.project_id,
        "project_id": row.project_id,
        "stateful": row.stateful,
        "shared": False,
        "description": row.description,
        "security_group_rules": [rule_view(each) for each in row.rules],
        "tags": row.tags,
        "created_at": stamp(row.created_at),
        "updated_at": stamp(row.updated_at),
        "revision_number": row.revision,
    }


def default_group(session: Session, project_id: str) -> SecurityGroup:
    """The project's `default` group, which is made at its first use."""
    query = select(SecurityGroup).where(SecurityGroup.project_id == project_id, SecurityGroup.name == "default")
    row = session.scalars(query).first()
    if row is None:
        row = _new_group(session, project_id, "default", "Default security group")
        for ethertype in ("IPv4", "IPv6"):
            rule = SecurityGroupRule(project_id=project_id, direction="ingress", ethertype=ethertype, description="")
            rule.remote_group_id = row.id
            row.rules.append(rule)
        session.flush()
    return row


def _new_group(session: Session, project_id: str, name: str, description: str) -> SecurityGroup:
    row = SecurityGroup(project_id=project_id, name=name, description=description, tags=[], stateful=True, revision=1)
    for ethertype in ("IPv4", "IPv6"):
        row.rules.append(
            SecurityGroupRule(project_id=project_id, direction="egress", ethertype=ethertype, description="")
        )
    session.add(row)
    session.flush()
    return row


def checked(call: Call, wanted: Any) -> list[str]:
    """The security group ids of a port. Raises ApiError 404 for a group that the caller can't see."""
    return [_find(call, group_id).id for group_id in attributes.texts("security_groups", wanted)]


def _find(call: Call, group_id: Any) -> SecurityGroup:
    row = call.session.get(SecurityGroup, group_id) if isinstance(group_id, str) else None
    if row is None or not call.caller.owns(row.project_id):
        raise not_found(f"Security group {group_id} does not exist", "SecurityGroupNotFound")
    return row


def list_groups(call: Call) -> Json:
    if call.caller.project_id:
        default_group(call.session, call.caller.project_id)
    rows = call.session.scalars(select(SecurityGroup).order_by(SecurityGroup.created_at))
    return collection(call, "security_groups", [view(row) for row in rows if call.caller.owns(row.project_id)])


def show(call: Call, group_id: str) -> Json:
    return one(call, "security_group", view(_find(call, group_id)))


def create(call: Call) -> Json:
    given = call.body("security_group")
    name = attributes.text("name", given.get("name"))
    if name == "default":
        raise conflict("Default security group already exists.", "SecurityGroupDefaultAlreadyExists")
    project_id = attributes.project_of(call, given)
    description = attributes.text("description", given.get("description") or "")
    row = _new_group(call.session, project_id, name, description)
    row.stateful = attributes.boolean("stateful", given.get("stateful", True))
    return {"security_group": view(row)}


def update(call: Call, group_id: str) -> Json:
    row = _find(call, group_id)
    given = call.body("security_group")
    for name in ("name", "description"):
        if given.get(name) is not None:
            setattr(row, name, attributes.text(name, given[name]))
    row.revision += 1
    row.updated_at = now()
    return {"security_group": view(row)}


def delete(call: Call, group_id: str) -> None:
    row = _find(call, group_id)
    if row.name == "default" and not call.caller.is_admin:
        raise conflict("Removing the default security group is not allowed.", "SecurityGroupCannotRemoveDefault")
    ports = call.session.scalars(select(Port).where(Port.project_id == row.project_id))
    if any(row.id in port.security_groups for port in ports):
        raise conflict(f"Security Group {row.id} in use.", "SecurityGroupInUse")
    call.session.delete(row)


def list_rules(call: Call) -> Json:
    rows = call.session.scalars(select(SecurityGroupRule).order_by(SecurityGroupRule.created_at))
    visible = [rule_view(row) for row in rows if call.caller.owns(row.project_id)]
    return collection(call, "security_group_rules", visible)


def show_rule(call: Call, rule_id: str) -> Json:
    return one(call, "security_group_rule", rule_view(_find_rule(call, rule_id)))


def create_rule(call: Call) -> Json:
    document = call.body()
    if "security_group_rules" in document:
        given_list = attributes.objects("security_group_rules", document["security_group_rules"])
        return {"security_group_rules": [rule_view(_make_rule(call, given)) for given in given_list]}
    given = attributes.mapping("security_group_rule", document.get("security_group_rule"))
    return {"security_group_rule": rule_view(_make_rule(call, given))}


def _make_rule(call: Call, given: Json) -> SecurityGroupRule:
    group = _find(call, given.get("security_group_id"))
    if given.get("direction") not in ("ingress", "egress"):
        raise bad_request("Invalid input for direction. Reason: it must be ingress or egress.")
    if given.get("ethertype", "IPv4") not in ("IPv4", "IPv6"):
        raise bad_request("Invalid input for ethertype. Reason: it must be IPv4 or IPv6.")
    row = SecurityGroupRule(
        project_id=group.project_id,
        direction=given["direction"],
        ethertype=given.get("ethertype", "IPv4"),
        protocol=None if given.get("protocol") is None else str(given["protocol"]),
        port_range_min=_port_number("port_range_min", given),
        port_range_max=_port_number("port_range_max", given),
        remote_ip_prefix=given.get("remote_ip_prefix"),
        remote_group_id=given.get("remote_group_id"),
        description=attributes.text("description", given.get("description") or ""),
    )
    for other in group.rules:
        if all(getattr(other, name) == getattr(row, name) for name in RULE_IDENTITY):
            raise conflict(f"Security group rule already exists. Rule id is {other.id}.", "SecurityGroupRuleExists")
    group.rules.append(row)
    call.session.flush()
    return row


RULE_IDENTITY = (
    *("direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix"),
    "remote_group_id",
)


def _port_number(name: str, given: Json) -> int | None:
    return None if given.get(name) is None else attributes.number(name, given[name], 0, 65535)


def delete_rule(call: Call, rule_id: str) -> None:
    rule = _find_rule(call, rule_id)
    call.session.get_one(SecurityGroup, rule.security_group_id).rules.remove(rule)


def _find_rule(call: Call, rule_id: str) -> SecurityGroupRule:
    row = call.session.get(SecurityGroupRule, rule_id)
    if row is None or not call.caller.owns(row.project_id):
        raise not_found(f"Security group rule {rule_id} does not exist", "SecurityGroupRuleNotFound")
    return row
