"""``/servers/{server_id}/ips`` and ``/servers/{server_id}/os-server-password``."""

from __future__ import annotations

import sqlalchemy as sa

from causeway import errors
from causeway.api.answers import server_parts
from causeway.api.answers import servers as server_answers
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, views
from causeway.model.guest_password import password_in, with_password
from causeway.store import servers
from causeway.store.cell import instances

_COLUMNS = frozenset({"network_info"})


@handler(answer=server_answers.ADDRESSES)
def index(request: ApiRequest, server_id: str) -> Response:
    found = loading.load(request, server_id, "os_compute_api:ips:index", columns=_COLUMNS, tags=False)
    return Response(200, {"addresses": views.addresses(found.vifs, extended=False)})


@handler(answer=server_answers.ADDRESSES_OF_NETWORK)
def show(request: ApiRequest, server_id: str, network_label: str) -> Response:
    found = loading.load(request, server_id, "os_compute_api:ips:show", columns=_COLUMNS, tags=False)
    addresses = views.addresses(found.vifs, extended=False)
    if network_label not in addresses:
        raise errors.NotFound("Instance is not a member of specified network")
    return Response(200, {network_label: addresses[network_label]})


@handler(answer=server_parts.PASSWORD)
def show_password(request: ApiRequest, server_id: str) -> Response:
    """The password that the guest posted to the metadata service, encrypted with the user's key; empty if it posted none."""
    rule = "os_compute_api:os-server-password:show"
    found = loading.load(request, server_id, rule, columns=frozenset({"system_metadata"}), tags=False)
    return Response(200, {"password": password_in(found.system_metadata)})


@handler(statuses=(204,), answer=EMPTY)
def clear_password(request: ApiRequest, server_id: str) -> Response:
    """Deletes the stored password. The guest keeps its own, and may post one again."""
    rule = "os_compute_api:os-server-password:clear"
    found = loading.load(request, server_id, rule, columns=frozenset({"system_metadata"}), tags=False)
    if found.cell_uuid is None or not password_in(found.system_metadata):
        return Response(204)

    def clear(connection: sa.Connection) -> None:
        known = instances.get_in(connection, server_id, with_tags=False).system_metadata
        instances.update_in(connection, server_id, system_metadata=with_password(known, ""))

    servers.change(request.services.cells, server_id, found.cell_uuid, clear)
    return Response(204)
