"""``/os-floating-ips``, ``/os-floating-ip-pools`` and the actions addFloatingIp and removeFloatingIp (until 2.43).

Source: Compute API reference, "Floating IPs", "Floating IP pools" (deprecated).
"""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.answers import proxies as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.proxies.forward import ask
from causeway.api.request import ApiRequest, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.api.servers import loading
from causeway.api.validation import is_uuid
from causeway.clients.port_owners import PortOwner
from causeway.model.instance import Instance

RULE = "os_compute_api:os-floating-ips:"
FLOATING, ONE = "/v2.0/floatingips", "/v2.0/floatingips/{floating_ip_id}"
# Without a body, and with {} or {"pool": null}, any external network will do.
_CREATE: VersionedSchemas = [
    (
        1,
        None,
        {
            "type": ["object", "null"],
            "properties": {"pool": {"type": ["string", "null"]}},
            "additionalProperties": True,
        },
    )
]
_IP = {"type": "string", "format": "ip"}
_ADD: VersionedSchemas = [
    (
        1,
        43,
        common.body("addFloatingIp", common.properties(["address"], address=_IP, fixed_address=_IP)),
    )
]
_REMOVE: VersionedSchemas = [(1, 43, common.body("removeFloatingIp", common.properties(["address"], address=_IP)))]


def _pools(request: ApiRequest) -> list[dict[str, Any]]:
    answer = ask(
        request,
        request.services.network,
        "GET",
        "/v2.0/networks",
        "list external networks",
        query={"router:external": "True"},
    )
    found: list[dict[str, Any]] = answer["networks"]
    return found


def _all(request: ApiRequest, **wanted: str) -> list[dict[str, Any]]:
    query = {"project_id": request.project_id, **wanted}
    found: list[dict[str, Any]] = ask(
        request, request.services.network, "GET", FLOATING, "list floating IPs", query=query
    )["floatingips"]
    return found


def _view(request: ApiRequest, ip: dict[str, Any], pools: dict[str, str]) -> dict[str, Any]:
    network_id = ip["floating_network_id"]
    port = request.services.network.show_port(request.context, ip["port_id"]) if ip["port_id"] else None
    return {
        "id": ip["id"],
        "ip": ip["floating_ip_address"],
        "pool": pools.get(network_id, network_id),
        "fixed_ip": ip["fixed_ip_address"],
        "instance_id": (port["device_id"] or None) if port else None,
    }


def _names(request: ApiRequest) -> dict[str, str]:
    return {pool["id"]: pool["name"] or pool["id"] for pool in _pools(request)}


@handler(answer=answers.POOLS)
def pools(request: ApiRequest) -> Response:
    request.authorize("os_compute_api:os-floating-ip-pools")
    return Response(200, {"floating_ip_pools": [{"name": name} for name in _names(request).values()]})


@handler(answer=answers.FLOATING_IPS)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "list")
    names = _names(request)
    return Response(200, {"floating_ips": [_view(request, ip, names) for ip in _all(request)]})


@handler(answer=answers.FLOATING_IP)
def show(request: ApiRequest, floating_ip_id: str) -> Response:
    request.authorize(RULE + "show")
    return Response(200, {"floating_ip": _view(request, _one(request, floating_ip_id), _names(request))})


def _one(request: ApiRequest, floating_ip_id: str) -> dict[str, Any]:
    if not is_uuid(floating_ip_id):
        raise errors.NotFound(f"Floating IP not found for ID {floating_ip_id}")
    found: dict[str, Any] = ask(
        request,
        request.services.network,
        "GET",
        ONE,
        f"show floating IP {floating_ip_id}",
        floating_ip_id=floating_ip_id,
    )["floatingip"]
    return found


@handler(body=_CREATE, answer=answers.FLOATING_IP)
def create(request: ApiRequest) -> Response:
    request.authorize(RULE + "create")
    wanted = (request.body or {}).get("pool")
    available = _pools(request)
    network_id = next((pool["id"] for pool in available if wanted in (None, pool["name"], pool["id"])), None)
    if network_id is None:
        raise errors.NotFound(f"Floating IP pool {wanted or ''} not found.")
    body = {"floatingip": {"floating_network_id": network_id, "project_id": request.project_id}}
    made = ask(request, request.services.network, "POST", FLOATING, "make a floating IP", body=body)["floatingip"]
    return Response(200, {"floating_ip": _view(request, made, _names(request))})


@handler(statuses=(202,), answer=EMPTY)
def delete(request: ApiRequest, floating_ip_id: str) -> Response:
    request.authorize(RULE + "delete")
    _one(request, floating_ip_id)
    ask(
        request,
        request.services.network,
        "DELETE",
        ONE,
        f"delete floating IP {floating_ip_id}",
        floating_ip_id=floating_ip_id,
    )
    return Response(202)


def _by_address(request: ApiRequest, address: str) -> dict[str, Any]:
    found = _all(request, floating_ip_address=address)
    if not found:
        raise errors.NotFound(f"Floating IP not found for address {address}.")
    return found[0]


def _associate(request: ApiRequest, ip: dict[str, Any], port_id: str | None, fixed: str | None) -> None:
    changes = {"port_id": port_id} | ({"fixed_ip_address": fixed} if port_id else {})
    ask(
        request,
        request.services.network,
        "PUT",
        ONE,
        f"associate floating IP {ip['floating_ip_address']}",
        body={"floatingip": changes},
        floating_ip_id=ip["id"],
    )


def _addresses(request: ApiRequest, instance: Instance) -> list[tuple[str, str]]:
    """(port, IPv4 address) of a server."""
    ports = request.services.network.ports_of_server(request.context, PortOwner.of(instance))
    return [(port["id"], ip["ip_address"]) for port in ports for ip in port["fixed_ips"] if ":" not in ip["ip_address"]]


@handler(body=_ADD, statuses=(202,), answer=EMPTY)
def add(request: ApiRequest, server_id: str) -> Response:
    """Adds a floating IP to an address that has none yet. As in Nova, an address has at most one."""
    wanted = request.body["addFloatingIp"]
    home = loading.load_in_cell(request, server_id, RULE + "add", "addFloatingIp")
    addresses = _addresses(request, home.instance)
    if not addresses:
        raise errors.BadRequest("No fixed IP addresses associated to instance")
    ip = _by_address(request, wanted["address"])
    fixed = wanted.get("fixed_address")
    if fixed is None:
        taken = {found["fixed_ip_address"] for found in _all(request) if found["port_id"] in dict(addresses)}
        free = [(port, address) for port, address in addresses if address not in taken]
        if not free:
            raise errors.BadRequest("All of the server's fixed addresses have a floating IP")
        addresses = free
    else:
        addresses = [(port, address) for port, address in addresses if address == fixed]
        if not addresses:
            raise errors.BadRequest("Specified fixed address not assigned to instance")
    _associate(request, ip, *addresses[0])
    return Response(202)


@handler(body=_REMOVE, statuses=(202,), answer=EMPTY)
def remove(request: ApiRequest, server_id: str) -> Response:
    home = loading.load_in_cell(request, server_id, RULE + "remove", "removeFloatingIp")
    address = request.body["removeFloatingIp"]["address"]
    ip = _by_address(request, address)
    if ip["port_id"] not in {
        port["id"] for port in request.services.network.ports_of_server(request.context, PortOwner.of(home.instance))
    }:
        raise errors.Conflict(f"Floating IP {address} is not associated with instance {server_id}.")
    _associate(request, ip, None, None)
    return Response(202)
