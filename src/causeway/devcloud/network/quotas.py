"""/v2.0/quotas: limits per project. devcloud stores and shows them, but does not enforce them."""

from typing import Any

from sqlalchemy import bindparam, func, select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request
from causeway.devcloud.network import attributes
from causeway.devcloud.tables.network import FloatingIp, Network, Port, Router, SecurityGroup, SecurityGroupRule, Subnet
from causeway.devcloud.tables.quota import Quota
from causeway.devcloud.web import Call

SERVICE = "network"
DEFAULTS = {
    "network": 100,
    "subnet": 100,
    "port": 500,
    "router": 10,
    "floatingip": 50,
    "security_group": 10,
    "security_group_rule": 100,
    "subnetpool": -1,
    "rbac_policy": 10,
}
COUNTED: dict[str, Any] = {
    "network": Network,
    "subnet": Subnet,
    "port": Port,
    "router": Router,
    "floatingip": FloatingIp,
    "security_group": SecurityGroup,
    "security_group_rule": SecurityGroupRule,
}
# Counts a project's objects in one statement, which is executed before each port is made.
_USED = select(
    *(
        select(func.count())
        .select_from(model)
        .where(model.project_id == bindparam("of_project"))
        .scalar_subquery()
        .label(resource)
        for resource, model in COUNTED.items()
    )
)


def _limits(call: Call, project_id: str) -> dict[str, int]:
    query = select(Quota).where(Quota.service == SERVICE, Quota.project_id == project_id)
    return {**DEFAULTS, **{row.resource: row.limit for row in call.session.scalars(query)}}


def _own(call: Call, project_id: str) -> None:
    if call.caller.project_id != project_id:
        call.require_privileged()


def list_quotas(call: Call) -> Json:
    call.require_privileged()
    projects = call.session.scalars(select(Quota.project_id).where(Quota.service == SERVICE).distinct())
    return {"quotas": [{**_limits(call, each), "project_id": each, "tenant_id": each} for each in projects]}


def show(call: Call, project_id: str) -> Json:
    _own(call, project_id)
    return {"quota": _limits(call, project_id)}


def show_default(call: Call, project_id: str) -> Json:
    _own(call, project_id)
    return {"quota": dict(DEFAULTS)}


def show_details(call: Call, project_id: str) -> Json:
    _own(call, project_id)
    used = call.session.execute(_USED, {"of_project": project_id}).one()._mapping
    limits = _limits(call, project_id)
    return {
        "quota": {
            resource: {"limit": limit, "used": used.get(resource, 0), "reserved": 0}
            for resource, limit in limits.items()
        }
    }


def update(call: Call, project_id: str) -> Json:
    call.require_privileged()
    for resource, limit in call.body("quota").items():
        if resource in ("tenant_id", "project_id", "force", "check_limit"):
            continue
        if resource not in DEFAULTS:
            raise bad_request(f"Unrecognized attribute(s) '{resource}'", "HTTPBadRequest")
        value = attributes.number(resource, limit, -1)
        row = call.session.get(Quota, (SERVICE, project_id, resource))
        if row is None:
            call.session.add(Quota(service=SERVICE, project_id=project_id, resource=resource, limit=value))
        else:
            row.limit = value
    call.session.flush()
    return {"quota": _limits(call, project_id)}


def delete(call: Call, project_id: str) -> None:
    call.require_privileged()
    for row in call.session.scalars(select(Quota).where(Quota.service == SERVICE, Quota.project_id == project_id)):
        call.session.delete(row)
