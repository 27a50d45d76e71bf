"""``/os-networks`` and ``/os-tenant-networks``. Source: Compute API reference, "Networks", "Project networks" (deprecated)."""

from __future__ import annotations

from typing import Any

from causeway.api.answers import proxies as answers
from causeway.api.proxies.forward import ask
from causeway.api.request import ApiRequest, Response, handler

RULE = "os_compute_api:os-networks:"
TENANT_RULE = "os_compute_api:os-tenant-networks:"
# What nova-network's networks had, and the network service's don't have.
_UNKNOWN = (
    *(
        "bridge",
        "bridge_interface",
        "broadcast",
        "cidr",
        "cidr_v6",
        "created_at",
        "deleted",
        "deleted_at",
        "dhcp_server",
    ),
    *("dhcp_start", "dns1", "dns2", "enable_dhcp", "gateway", "gateway_v6", "host", "injected", "mtu", "multi_host"),
    *("netmask", "netmask_v6", "priority", "project_id", "rxtx_base", "share_address", "updated_at", "vlan"),
    *("vpn_private_address", "vpn_public_address", "vpn_public_port"),
)


def _networks(request: ApiRequest) -> list[dict[str, Any]]:
    return list(request.services.network.list_networks(request.context, request.project_id, external=True))


def _network(request: ApiRequest, network_id: str) -> dict[str, Any]:
    answer = ask(
        request,
        request.services.network,
        "GET",
        "/v2.0/networks/{network_id}",
        f"show network {network_id}",
        network_id=network_id,
    )
    found: dict[str, Any] = answer["network"]
    return found


def _view(network: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(_UNKNOWN) | {"id": network["id"], "label": network["name"]}


@handler(answer=answers.NETWORKS)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "list")
    return Response(200, {"networks": [_view(network) for network in _networks(request)]})


@handler(answer=answers.NETWORK)
def show(request: ApiRequest, network_id: str) -> Response:
    request.authorize(RULE + "show")
    return Response(200, {"network": _view(_network(request, network_id))})


def _tenant_view(network: dict[str, Any]) -> dict[str, Any]:
    return {"id": network["id"], "label": network["name"], "cidr": str(None)}


@handler(answer=answers.TENANT_NETWORKS)
def index_of_tenant(request: ApiRequest) -> Response:
    request.authorize(TENANT_RULE + "list")
    return Response(200, {"networks": [_tenant_view(network) for network in _networks(request)]})


@handler(answer=answers.TENANT_NETWORK)
def show_of_tenant(request: ApiRequest, network_id: str) -> Response:
    request.authorize(TENANT_RULE + "show")
    return Response(200, {"network": _tenant_view(_network(request, network_id))})
