"""``/servers/{server_id}/ips``, and what is read of a server in other small ways: password."""

from __future__ import annotations

from causeway import errors
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, views

_COLUMNS = frozenset({"network_info"})


@handler()
def index(request: ApiRequest, server_id: str) -> Response:
    found = loading.load(request, server_id, "os_compute_api:ips:index", columns=_COLUMNS, tags=False)
    return Response(200, {"addresses": views.addresses(found.vifs, extended=False)})


@handler()
def show(request: ApiRequest, server_id: str, network_label: str) -> Response:
    found = loading.load(request, server_id, "os_compute_api:ips:show", columns=_COLUMNS, tags=False)
    addresses = views.addresses(found.vifs, extended=False)
    if network_label not in addresses:
        raise errors.NotFound("Instance is not a member of specified network")
    return Response(200, {network_label: addresses[network_label]})


@handler()
def show_password(request: ApiRequest, server_id: str) -> Response:
    """The password that a guest posted, encrypted with the user's key; no guest can post one yet."""
    rule = "os_compute_api:os-server-password:show"
    loading.load(request, server_id, rule, columns=frozenset(), tags=False)
    return Response(200, {"password": ""})


@handler(statuses=(204,))
def clear_password(request: ApiRequest, server_id: str) -> Response:
    rule = "os_compute_api:os-server-password:clear"
    loading.load(request, server_id, rule, columns=frozenset(), tags=False)
    return Response(204)
