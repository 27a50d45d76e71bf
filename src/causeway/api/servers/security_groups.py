"""Security groups of a server: those of its ports. ``/servers/{server_id}/os-security-groups`` and the two actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, schemas
from causeway.api.servers.loading import Home
from causeway.store.cell import instances

SHOW = "os_compute_api:servers:show"
CHANGE = "os_compute_api:servers:update"


@handler()
def index(request: ApiRequest, server_id: str) -> Response:
    loading.load(request, server_id, SHOW, columns=frozenset(), tags=False)
    ports = request.services.network.ports_of_server(request.context, server_id)
    ids = {group for port in ports for group in port.get("security_groups", [])}
    found = request.services.network.list_security_groups(request.context, ids=ids) if ids else []
    return Response(200, {"security_groups": [_view(group) for group in found]})


def _view(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": group["id"],
        "name": group["name"],
        "description": group.get("description") or "",
        "tenant_id": group.get("project_id") or group.get("tenant_id"),
        "rules": [],
    }


@handler(body=schemas.ADD_GROUP, statuses=(202,))
def add(request: ApiRequest, server_id: str) -> Response:
    name = request.body["addSecurityGroup"]["name"]
    home, group = _take(request, server_id, "addSecurityGroup", name)
    for port in _ports(request, home):
        present = list(port.get("security_groups", []))
        if group not in present:
            request.services.network.update_port(request.context, port["id"], {"security_groups": [*present, group]})
    _change_names(request, home, lambda names: names if name in names else [*names, name])
    return Response(202)


@handler(body=schemas.REMOVE_GROUP, statuses=(202,))
def remove(request: ApiRequest, server_id: str) -> Response:
    name = request.body["removeSecurityGroup"]["name"]
    home, group = _take(request, server_id, "removeSecurityGroup", name)
    ports = [port for port in _ports(request, home) if group in port.get("security_groups", [])]
    if not ports:
        raise errors.NotFound(f"Security group {name} not associated with the instance {server_id}")
    for port in ports:
        left = [other for other in port["security_groups"] if other != group]
        request.services.network.update_port(request.context, port["id"], {"security_groups": left})
    _change_names(request, home, lambda names: [other for other in names if other not in (name, group)])
    return Response(202)


def _change_names(request: ApiRequest, home: Home, change: Callable[[list[str]], list[str]]) -> None:
    """The record's list; two requests at once keep what the other one did."""

    def write(connection: sa.Connection) -> None:
        present = instances.get_in(connection, home.instance.uuid, with_tags=False).security_groups
        instances.update_in(connection, home.instance.uuid, security_groups=change(present))

    loading.change(request, home, write)


def _take(request: ApiRequest, server_id: str, action: str, name: str) -> tuple[Home, str]:
    """The server, and the id of the group."""
    home = loading.load_in_cell(request, server_id, CHANGE, action)
    loading.check_unlocked(request, home.instance)
    try:
        ids = request.services.network.security_group_ids(request.context, home.instance.project_id, [name])
    except errors.BadRequest as missing:
        raise errors.NotFound(missing.message) from missing
    return home, str(ids[0])


def _ports(request: ApiRequest, home: Home) -> list[dict[str, Any]]:
    ports: list[dict[str, Any]] = request.services.network.ports_of_server(request.context, home.instance.uuid)
    if not ports:
        raise errors.BadRequest(f"Instance {home.instance.uuid} has no port to put a security group on.")
    return ports
