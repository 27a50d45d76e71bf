"""Security groups of a server: those of its ports. ``/servers/{server_id}/os-security-groups`` and the two actions.

The server's own view shows the names in its record, which the actions update at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.api.answers import proxies as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, schemas
from causeway.api.servers.loading import Home
from causeway.api.views import security_groups as views
from causeway.store.cell import instances

RULE = "os_compute_api:os-security-groups:"


@handler(answer=answers.SECURITY_GROUPS)
def index(request: ApiRequest, server_id: str) -> Response:
    loading.load(request, server_id, RULE + "list", columns=frozenset(), tags=False)
    ports = request.services.network.ports_of_server(request.context, server_id)
    ids = {group for port in ports for group in port.get("security_groups", [])}
    return Response(200, {"security_groups": _shown(request, ids) if ids else []})


def _shown(request: ApiRequest, ids: set[str]) -> list[dict[str, Any]]:
    """The groups with their rules, and the names of other groups that these refer to."""
    network = request.services.network
    found = {group["id"]: group for group in network.list_security_groups(request.context, ids=ids)}
    rules = [rule for group in found.values() for rule in group.get("security_group_rules", [])]
    others = {rule["remote_group_id"] for rule in rules if rule["remote_group_id"]} - set(found)
    known = dict(found)
    if others:
        known |= {group["id"]: group for group in network.list_security_groups(request.context, ids=others)}
    shown = [views.of_group(group, known) for group in found.values()]
    return sorted(shown, key=lambda group: (group["tenant_id"], group["name"]))


@handler(body=schemas.ADD_GROUP, statuses=(202,), answer=EMPTY)
def add(request: ApiRequest, server_id: str) -> Response:
    name = request.body["addSecurityGroup"]["name"]
    home, group = _server_and_group(request, server_id, "add", name)

    def added(port: dict[str, Any]) -> dict[str, Any] | None:
        present = port.get("security_groups", [])
        return None if group in present else {"security_groups": [*present, group]}

    ports = [request.services.network.change_port(request.context, port, added) for port in _ports(request, home)]
    _write(request, home, ports, lambda names: names if name in names else [*names, name])
    return Response(202)


@handler(body=schemas.REMOVE_GROUP, statuses=(202,), answer=EMPTY)
def remove(request: ApiRequest, server_id: str) -> Response:
    name = request.body["removeSecurityGroup"]["name"]
    home, group = _server_and_group(request, server_id, "remove", name)

    def removed(port: dict[str, Any]) -> dict[str, Any] | None:
        present = port.get("security_groups", [])
        return {"security_groups": [other for other in present if other != group]} if group in present else None

    ports = [port for port in _ports(request, home) if group in port.get("security_groups", [])]
    if not ports:
        raise errors.NotFound(f"Security group {name} not associated with the instance {server_id}")
    changed = [request.services.network.change_port(request.context, port, removed) for port in ports]
    _write(request, home, changed, lambda names: [other for other in names if other not in (name, group)])
    return Response(202)


def _write(
    request: ApiRequest, home: Home, ports: list[dict[str, Any]], change: Callable[[list[str]], list[str]]
) -> None:
    """Writes the groups of the server's ports, and with ``change`` the names that ports made later get.

    In one transaction, so that concurrent requests keep each other's changes.
    """
    uuid, of_ports = home.instance.uuid, request.services.network.group_names(ports)

    def write(connection: sa.Connection) -> None:
        present = instances.get_in(connection, uuid, with_tags=False)
        vifs = [
            replace(vif, security_groups=of_ports[vif.id]) if vif.id in of_ports else vif
            for vif in present.network_info
        ]
        instances.update_in(connection, uuid, security_groups=change(present.security_groups), network_info=vifs)

    loading.change(request, home, write)


def _server_and_group(request: ApiRequest, server_id: str, action: str, name: str) -> tuple[Home, str]:
    """The server, and the id of the group."""
    home = loading.load_in_cell(request, server_id, RULE + action, f"{action}SecurityGroup")
    loading.check_unlocked(request, home.instance)
    try:
        ids = request.services.network.security_group_ids(request.context, home.instance.project_id, [name])
    except errors.BadRequest as missing:
        raise errors.NotFound(missing.message) from missing
    return home, str(ids[0])


def _ports(request: ApiRequest, home: Home) -> list[dict[str, Any]]:
    ports: list[dict[str, Any]] = request.services.network.ports_of_server(request.context, home.instance.uuid)
    if not ports:
        raise errors.NotFound(f"instance_id {home.instance.uuid} could not be found as device id on any ports")
    return ports
