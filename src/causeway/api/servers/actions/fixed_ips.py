"""Actions addFixedIp and removeFixedIp, up to 2.43. Source: Compute API reference, "Servers - run an action".

As in Nova, the network service makes the change before the answer is sent; there is no operation of the journal.
"""

from __future__ import annotations

from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, JsonSchema, Response, handler
from causeway.api.servers import loading
from causeway.api.servers.schemas import action, fields
from causeway.clients.port_owners import PortOwner
from causeway.model.events import CHANGED, ExternalEvent, HostEvents

_NETWORK: JsonSchema = fields(
    {"networkId": {"type": ["string", "number"], "minLength": 1, "maxLength": 36}}, ("networkId",)
)
_ADDRESS: JsonSchema = fields({"address": {"type": "string", "format": "ip"}}, ("address",))


@handler(body=[(1, 43, action("addFixedIp", _NETWORK))], statuses=(202,), answer=EMPTY)
def add(request: ApiRequest, server_id: str) -> Response:
    home = _load(request, server_id, "os-multinic:add", "addFixedIp")
    network_id = str(request.body["addFixedIp"]["networkId"])
    request.services.network.add_fixed_ip(request.context, PortOwner.of(home.instance), network_id)
    _show(request, home)
    return Response(202)


@handler(body=[(1, 43, action("removeFixedIp", _ADDRESS))], statuses=(202,), answer=EMPTY)
def remove(request: ApiRequest, server_id: str) -> Response:
    home = _load(request, server_id, "os-multinic:remove", "removeFixedIp")
    address = request.body["removeFixedIp"]["address"]
    request.services.network.remove_fixed_ip(request.context, PortOwner.of(home.instance), address)
    _show(request, home)
    return Response(202)


def _load(request: ApiRequest, server_id: str, rule: str, name: str) -> loading.Home:
    home = loading.load_in_cell(request, server_id, f"os_compute_api:{rule}", name, tags=False, after_snapshot=True)
    loading.check_unlocked(request, home.instance)
    return home


def _show(request: ApiRequest, home: loading.Home) -> None:
    """Refreshes the addresses that the server shows: not every network service is set up to report changes."""
    if home.instance.host:
        event = ExternalEvent(CHANGED, home.instance.uuid)
        hosts = [HostEvents(home.cell_uuid, home.instance.host, [event])]
        request.services.conductor.external_events(request.context, hosts=hosts)
