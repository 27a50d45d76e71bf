"""Security groups of a server: those of its ports. ``/servers/{server_id}/os-security-groups`` and the two actions.

The server's own view shows the names in its record, which the actions update at once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.api.answers import proxies as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, schemas
from causeway.api.servers.loading import Home
from causeway.api.views import security_groups as views
from causeway.clients.port_owners import PortOwner
from causeway.store.cell import instances

RULE = "os_compute_api:os-security-groups:"
# How often a request repeats what others have changed beside it.
ATTEMPTS = 5


@handler(answer=answers.SECURITY_GROUPS)
def index(request: ApiRequest, server_id: str) -> Response:
    home = loading.load(request, server_id, RULE + "list", columns=frozenset({"network_info"}), tags=False)
    ports = request.services.network.ports_of_server(request.context, PortOwner.of(home.instance))
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
    change = _Change(
        {name, group},
        lambda present: present if group in present else [*present, group],
        lambda names: names if name in names else [*names, name],
    )
    _make(request, home, _ports(request, home), change)
    return Response(202)


@handler(body=schemas.REMOVE_GROUP, statuses=(202,), answer=EMPTY)
def remove(request: ApiRequest, server_id: str) -> Response:
    name = request.body["removeSecurityGroup"]["name"]
    home, group = _server_and_group(request, server_id, "remove", name)
    ports = [port for port in _ports(request, home) if group in port.get("security_groups", [])]
    if not ports:
        raise errors.NotFound(f"Security group {name} not associated with the instance {server_id}")
    change = _Change(
        {name, group},
        lambda present: [other for other in present if other != group],
        lambda names: [other for other in names if other not in (name, group)],
    )
    _make(request, home, ports, change)
    return Response(202)


@dataclass(frozen=True)
class _Change:
    """A change of the groups of each port (ids), and of the names in the record. ``own``: the group's name and id."""

    own: set[str]
    of_port: Callable[[list[str]], list[str]]
    of_names: Callable[[list[str]], list[str]]

    def and_of_others(self, added: list[str], removed: list[str]) -> Callable[[list[str]], list[str]]:
        """The change of a port, with groups that others have added and removed."""

        def of_port(present: list[str]) -> list[str]:
            wanted = [group for group in self.of_port(present) if group not in removed]
            return [*wanted, *(group for group in added if group not in wanted)]

        return of_port


def _make(request: ApiRequest, home: Home, ports: list[dict[str, Any]], change: _Change) -> None:
    """Changes the ports, then the record; also as others have changed them meanwhile.

    Neutron may accept several changes of a port that began from the same state, and keep only the last one: it compares
    revisions without a lock, and not again after a deadlock. The record is changed in transactions. So whoever finds there what
    others have changed since repeats their changes, until the ports have all of them. Raises Conflict if that does not end.
    """
    before = set(home.instance.security_groups)
    pairs = _change_ports(request, ports, change.of_port)
    # What others have changed, and the ports were seen to have; None if they were changed once more.
    seen: set[str] | None = set()
    for _ in range(ATTEMPTS):
        after = _write(request, home, [changed for _port, changed in pairs], change.of_names)
        others = (before ^ after) - change.own
        if others == seen:
            return
        added, removed = _ids(request, home, others & after), _ids(request, home, others - after)
        pairs = _change_ports(request, _ports(request, home), change.and_of_others(added, removed))
        seen = others if all(changed is port for port, changed in pairs) else None
    raise errors.Conflict(f"The security groups of server {home.instance.uuid} are being changed by others. Try again.")


def _change_ports(
    request: ApiRequest, ports: list[dict[str, Any]], of_port: Callable[[list[str]], list[str]]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Returns each port as it was and as it is, without those that were deleted meanwhile."""
    pairs = []
    for port in ports:
        try:
            pairs.append((port, _change_port(request, port, of_port)))
        except errors.PortNotFound:
            # The same answer says that a group was deleted.
            if _is_there(request, port["id"]):
                raise
    return pairs


def _is_there(request: ApiRequest, port_id: str) -> bool:
    try:
        request.services.network.show_port(request.context, port_id)
    except errors.PortNotFound:
        return False
    return True


def _change_port(
    request: ApiRequest, port: dict[str, Any], of_port: Callable[[list[str]], list[str]]
) -> dict[str, Any]:
    """Returns the same port if there is nothing to change."""

    def wanted(port: dict[str, Any]) -> dict[str, Any] | None:
        present = port.get("security_groups", [])
        groups = of_port(present)
        return None if groups == present else {"security_groups": groups}

    changed: dict[str, Any] = request.services.network.change_port(request.context, port, wanted)
    return changed


def _ids(request: ApiRequest, home: Home, names: set[str]) -> list[str]:
    """The ids of groups that others have added or removed. Not of those that were deleted since."""
    found: list[str] = []
    for name in sorted(names):
        with suppress(errors.BadRequest, errors.Conflict):
            found += request.services.network.security_group_ids(request.context, home.instance.project_id, [name])
    return found


def _write(
    request: ApiRequest, home: Home, ports: list[dict[str, Any]], change: Callable[[list[str]], list[str]]
) -> set[str]:
    """Writes the groups of the server's ports, and with ``change`` the names that ports made later get. Returns these names.

    In one transaction, so that concurrent requests keep each other's changes.
    """
    uuid, of_ports = home.instance.uuid, request.services.network.group_names(ports)

    def write(connection: sa.Connection) -> set[str]:
        present = instances.get_in(connection, uuid, with_tags=False)
        vifs = [
            replace(vif, security_groups=of_ports[vif.id]) if vif.id in of_ports else vif
            for vif in present.network_info
        ]
        names = change(present.security_groups)
        instances.update_in(connection, uuid, security_groups=names, network_info=vifs)
        return set(names)

    return loading.change(request, home, write)


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
    ports: list[dict[str, Any]] = request.services.network.ports_of_server(request.context, PortOwner.of(home.instance))
    if not ports:
        raise errors.NotFound(f"instance_id {home.instance.uuid} could not be found as device id on any ports")
    return ports
