"""Operations on servers that are `Unavailable`: body, server and policy are checked, then they are refused."""

from __future__ import annotations

from causeway.api.dispatch import Route
from causeway.api.request import ApiRequest, Handler, JsonSchema, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.api.servers import loading
from causeway.api.servers.schemas import action, fields
from causeway.api.unavailable import Unavailable

_RESCUE: JsonSchema = fields({"adminPass": {"type": "string"}, "rescue_image_ref": common.UUID}) | {
    "type": ["object", "null"]
}
_NETWORK: JsonSchema = fields(
    {"networkId": {"type": ["string", "number"], "minLength": 1, "maxLength": 36}}, ("networkId",)
)
_ADDRESS: JsonSchema = fields({"address": {"type": "string", "format": "ip"}}, ("address",))


def _refuse(what: Unavailable, rule: str, body: VersionedSchemas | None = None) -> Handler:
    def run(request: ApiRequest, server_id: str) -> Response:
        loading.load(request, server_id, f"os_compute_api:{rule}", columns=frozenset(), tags=False)
        raise what.refusal(f"server {server_id}")

    run.__doc__ = f"{what.what}: not there yet."
    return handler(body=body)(run)


def _action(
    name: str, what: Unavailable, rule: str, value: JsonSchema, first: int = 1, last: int | None = None
) -> Route:
    refused = _refuse(what, rule, [(1, None, action(name, value))])
    return Route("POST", "/servers/{server_id}/action", refused, first, last, action=name)


ACTIONS = [
    _action("rescue", Unavailable.RESCUE, "os-rescue", _RESCUE),
    _action("unrescue", Unavailable.UNRESCUE, "os-unrescue", common.ANYTHING),
    _action("addFixedIp", Unavailable.ADD_FIXED_IP, "os-multinic:add", _NETWORK, 1, 43),
    _action("removeFixedIp", Unavailable.REMOVE_FIXED_IP, "os-multinic:remove", _ADDRESS, 1, 43),
]
