"""``/servers/{server_id}/os-interface``. Source: Compute API reference, "Port interfaces"."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.answers import server_parts
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import hosts, loading, schemas
from causeway.clients.network_info import order_ports
from causeway.clients.port_owners import PortOwner
from causeway.model import operations, server_actions
from causeway.model.network import RequestedNetwork, Vif
from causeway.operations.interfaces import DetachMemory
from causeway.requests.asking import ask_at_once

RULE = "os_compute_api:os-attach-interfaces:"
EXTERNAL = "network:attach_external_network"
_COLUMNS = frozenset({"network_info"})


def _view(request: ApiRequest, port: dict[str, Any], tag: str | None) -> dict[str, Any]:
    """``port``: as the network service shows it. ``tag``: of the device in the guest."""
    shown: dict[str, Any] = {
        "net_id": port["network_id"],
        "port_id": port["id"],
        "mac_addr": port["mac_address"],
        "port_state": port["status"],
        "fixed_ips": [{name: ip[name] for name in ("subnet_id", "ip_address")} for ip in port.get("fixed_ips") or []],
    }
    if request.version >= (2, 70):
        shown["tag"] = tag
    return shown


def _attached_view(request: ApiRequest, vif: Vif) -> dict[str, Any]:
    """A port just attached, as the server's record has it: the network service may still be setting it up."""
    ips = [{"subnet_id": ip.subnet_id, "ip_address": ip.address} for ip in vif.fixed_ips]
    status = "ACTIVE" if vif.active else "DOWN"
    port = {"id": vif.id, "network_id": vif.network_id, "mac_address": vif.address, "status": status, "fixed_ips": ips}
    return _view(request, port, vif.tag)


def _load_tags(request: ApiRequest, server_id: str, rule: str) -> tuple[PortOwner, dict[str, str | None]]:
    """The server, and the tags of the ports in its record, by their ids, in the order of the guest's devices."""
    instance = loading.load(request, server_id, RULE + rule, columns=_COLUMNS, tags=False).instance
    return PortOwner.of(instance), {vif.id: vif.tag for vif in instance.network_info}


def _not_there(server_id: str, port_id: str) -> errors.PortNotFound:
    return errors.PortNotFound(f"Instance {server_id} does not have a port with id {port_id}")


@handler(answer=server_parts.PORTS)
def index(request: ApiRequest, server_id: str) -> Response:
    owner, tags = _load_tags(request, server_id, "list")
    ports = order_ports(request.services.network.ports_of_server(request.context, owner), list(tags))
    return Response(200, {"interfaceAttachments": [_view(request, port, tags.get(port["id"])) for port in ports]})


@handler(answer=server_parts.PORT)
def show(request: ApiRequest, server_id: str, port_id: str) -> Response:
    owner, tags = _load_tags(request, server_id, "show")
    port = request.services.network.show_port(request.context, port_id)
    if not owner.has(port):
        raise _not_there(server_id, port_id)
    return Response(200, {"interfaceAttachment": _view(request, port, tags.get(port_id))})


@handler(body=schemas.ATTACH_INTERFACE, answer=server_parts.PORT)
def create(request: ApiRequest, server_id: str) -> Response:
    # An empty request is for a port in one of the project's networks.
    wanted = request.body.get("interfaceAttachment", {})
    network_id, port_id = wanted.get("net_id"), wanted.get("port_id")
    fixed_ips = wanted.get("fixed_ips")
    if network_id and port_id:
        raise errors.BadRequest("Must not input both network_id and port_id")
    if fixed_ips and not network_id:
        raise errors.BadRequest("Must input network_id when request IP address")
    home = loading.load_for_action(request, server_id, RULE + "create", server_actions.ATTACH_INTERFACE)
    hosts.check_up(request, loading.check_host(home.instance), home.cell_uuid)
    asked = RequestedNetwork(
        network_id=network_id,
        port_id=port_id,
        fixed_ip=fixed_ips[0]["ip_address"] if fixed_ips else None,
        tag=wanted.get("tag"),
    )
    if network_id or port_id:
        project_id = home.instance.project_id
        external = request.allows(EXTERNAL, {"project_id": project_id, "user_id": home.instance.user_id})
        [asked] = request.services.network.validate_networks(request.context, [asked], 1, project_id, external=external)
    vif = request.services.conductor.add_port(request.context, instance_uuid=server_id, requested=asked)
    return Response(200, {"interfaceAttachment": _attached_view(request, vif)})


@handler(statuses=(202,), answer=EMPTY)
def delete(request: ApiRequest, server_id: str, port_id: str) -> Response:
    home = loading.load_for_action(request, server_id, RULE + "delete", server_actions.DETACH_INTERFACE)
    if port_id not in {vif.id for vif in home.instance.network_info}:
        raise _not_there(server_id, port_id)
    hosts.check_up(request, loading.check_host(home.instance), home.cell_uuid)
    ask_at_once(request.services, request.context, server_id, operations.DETACH_INTERFACE, DetachMemory(port_id))
    return Response(202)
