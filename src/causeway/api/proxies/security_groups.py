"""``/os-security-groups`` and ``/os-security-group-rules``. Source: Compute API reference, "Security groups" (deprecated)."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.answers import proxies as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.proxies.forward import WINDOW, ask, window
from causeway.api.request import ApiRequest, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.api.schemas.common import to_bool
from causeway.api.validation import is_cidr, is_uuid
from causeway.api.views import security_groups as views

RULE = "os_compute_api:os-security-groups:"
GROUPS, GROUP = "/v2.0/security-groups", "/v2.0/security-groups/{group_id}"
RULES, ONE_RULE = "/v2.0/security-group-rules", "/v2.0/security-group-rules/{rule_id}"
_TEXT = {"type": "string", "maxLength": 255}
_GROUP: VersionedSchemas = [
    (
        1,
        None,
        common.properties(
            ["security_group"],
            True,
            security_group=common.properties(["name", "description"], True, name=_TEXT, description=_TEXT),
        ),
    )
]
_RULE: VersionedSchemas = [
    (
        1,
        None,
        common.properties(
            ["security_group_rule"],
            True,
            security_group_rule=common.properties(
                ["parent_group_id"],
                True,
                parent_group_id=common.UUID,
                group_id={"type": ["string", "null"], "format": "uuid"},
            ),
        ),
    )
]


def _call(request: ApiRequest, method: str, route: str, what: str, **more: Any) -> Any:
    return ask(request, request.services.network, method, route, what, **more)


def _all(request: ApiRequest, **query: str) -> dict[str, dict[str, Any]]:
    found = _call(request, "GET", GROUPS, "list security groups", query=query)["security_groups"]
    return {group["id"]: group for group in found}


def _get(request: ApiRequest, group_id: str) -> dict[str, Any]:
    if not is_uuid(group_id):
        raise errors.BadRequest(f"Security group id should be uuid: {group_id}")
    found: dict[str, Any] = _call(request, "GET", GROUP, f"show security group {group_id}", group_id=group_id)[
        "security_group"
    ]
    return found


@handler(query=WINDOW, answer=answers.SECURITY_GROUPS)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "get")
    everybody = to_bool(request.param("all_tenants") or "0") and request.context.is_admin
    found = _all(request, **({} if everybody else {"project_id": request.project_id}))
    shown = sorted((views.of_group(group, found) for group in found.values()), key=lambda group: group["name"])
    return Response(200, {"security_groups": window(request, shown)})


@handler(answer=answers.SECURITY_GROUP)
def show(request: ApiRequest, group_id: str) -> Response:
    request.authorize(RULE + "show")
    return Response(200, {"security_group": views.of_group(_get(request, group_id), _all(request))})


def _wanted(request: ApiRequest) -> dict[str, str]:
    """Name and description. Raises BadRequest if the name is empty."""
    given = request.body["security_group"]
    if not given["name"].strip():
        raise errors.BadRequest("Security group name cannot be empty.")
    return {"name": given["name"], "description": given["description"]}


@handler(body=_GROUP, answer=answers.SECURITY_GROUP)
def create(request: ApiRequest) -> Response:
    request.authorize(RULE + "create")
    body = {"security_group": _wanted(request) | {"project_id": request.project_id}}
    made = _call(request, "POST", GROUPS, "make a security group", body=body)["security_group"]
    return Response(200, {"security_group": views.of_group(made, _all(request))})


@handler(body=_GROUP, answer=answers.SECURITY_GROUP)
def update(request: ApiRequest, group_id: str) -> Response:
    request.authorize(RULE + "update")
    _get(request, group_id)
    body = {"security_group": _wanted(request)}
    changed = _call(request, "PUT", GROUP, f"change security group {group_id}", body=body, group_id=group_id)
    return Response(200, {"security_group": views.of_group(changed["security_group"], _all(request))})


@handler(statuses=(202,), answer=EMPTY)
def delete(request: ApiRequest, group_id: str) -> Response:
    request.authorize(RULE + "delete")
    if _get(request, group_id)["name"] == "default":
        raise errors.BadRequest("Unable to delete the default security group.")
    _call(request, "DELETE", GROUP, f"delete security group {group_id}", group_id=group_id)
    return Response(202)


# rules


def _port(value: Any, name: str) -> int | None:
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise errors.BadRequest(f"Invalid port {value!r} in {name}: it must be an integer.") from error


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """A rule in the network service's terms."""
    protocol = str(given["ip_protocol"]).lower() if given.get("ip_protocol") is not None else None
    first, last = (_port(given.get(name), name) for name in ("from_port", "to_port"))
    if protocol is not None and protocol not in views.PROTOCOLS:
        raise errors.BadRequest(f"Invalid IP protocol {protocol}.")
    if protocol is not None and (first is None or last is None):
        raise errors.BadRequest("Both from_port and to_port are needed with a protocol.")
    if first is not None and last is not None and protocol is not None:
        span = f"Invalid port range {first}:{last}."
        if first > last and protocol != "icmp":
            raise errors.BadRequest(f"{span} Former value cannot be greater than the later")
        bounds = (-1, 255) if protocol == "icmp" else (1, views.LAST_PORT)
        if not (bounds[0] <= first <= bounds[1] and bounds[0] <= last <= bounds[1]):
            raise errors.BadRequest(f"{span} Valid {protocol.upper()} ports should be between {bounds[0]}-{bounds[1]}")
    cidr = given.get("cidr")
    if cidr is not None and not is_cidr(cidr):
        raise errors.BadRequest(f"Invalid cidr {cidr}.")
    if given.get("group_id") is not None:
        cidr = None
    elif cidr is None:
        cidr = "0.0.0.0/0"
    bounded = protocol is not None and first != -1
    return {
        "direction": "ingress",
        "ethertype": "IPv6" if cidr is not None and ":" in cidr else "IPv4",
        "protocol": protocol,
        "port_range_min": first if bounded else None,
        "port_range_max": last if bounded else None,
        "remote_ip_prefix": cidr,
        "remote_group_id": given.get("group_id"),
    }


@handler(body=_RULE, answer=answers.SECURITY_GROUP_RULE)
def create_rule(request: ApiRequest) -> Response:
    request.authorize(RULE + "rule:create")
    given = request.body["security_group_rule"]
    group_id = str(given.get("parent_group_id"))
    parent = _get(request, group_id)
    if given.get("group_id") is not None and given.get("cidr") is None:
        _get(request, str(given["group_id"]))
    rule = _checked(given) | {"security_group_id": parent["id"], "project_id": parent["project_id"]}
    made = _call(request, "POST", RULES, "make a security group rule", body={"security_group_rule": rule})
    return Response(200, {"security_group_rule": views.of_rule(made["security_group_rule"], _all(request))})


@handler(statuses=(202,), answer=EMPTY)
def delete_rule(request: ApiRequest, rule_id: str) -> Response:
    request.authorize(RULE + "rule:delete")
    if not is_uuid(rule_id):
        raise errors.BadRequest(f"Rule id should be uuid: {rule_id}")
    _call(request, "DELETE", ONE_RULE, f"delete security group rule {rule_id}", rule_id=rule_id)
    return Response(202)
