"""``/servers/{server_id}/shares`` (2.97): no share can be attached yet, so a server has none."""

from __future__ import annotations

from causeway import errors
from causeway.api.answers import server_parts
from causeway.api.answers.parts import NEVER
from causeway.api.request import ApiRequest, JsonSchema, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.api.servers import loading
from causeway.api.unavailable import Unavailable
from causeway.model.states import VmState

RULE = "os_compute_api:os-server-shares:"
_TAG: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-]*$"}
_CREATE: VersionedSchemas = [
    (97, None, common.body("share", common.properties(["share_id"], share_id=common.UUID, tag=_TAG)))
]
_STRICT: VersionedSchemas = [(97, None, common.query({}, strict=True))]


@handler(query=_STRICT, answer=server_parts.SHARES)
def index(request: ApiRequest, server_id: str) -> Response:
    loading.load(request, server_id, RULE + "index", columns=frozenset(), tags=False)
    return Response(200, {"shares": []})


@handler(body=_CREATE, statuses=(), answer=NEVER)
def create(request: ApiRequest, server_id: str) -> Response:
    home = loading.load_in_cell(request, server_id, RULE + "create", "create share", tags=False)
    loading.check_state(home.instance, "create share", vm=(VmState.STOPPED,), task=None, launched=False)
    raise Unavailable.ATTACH_SHARE.refusal(f"server {server_id}")


@handler(query=_STRICT, statuses=(), answer=NEVER)
def show(request: ApiRequest, server_id: str, share_id: str) -> Response:
    loading.load(request, server_id, RULE + "show", columns=frozenset(), tags=False)
    raise _not_attached(server_id, share_id)


@handler(statuses=(), answer=NEVER)
def delete(request: ApiRequest, server_id: str, share_id: str) -> Response:
    home = loading.load_in_cell(request, server_id, RULE + "delete", "delete share", tags=False)
    states = (VmState.STOPPED, VmState.ERROR)
    loading.check_state(home.instance, "delete share", vm=states, task=None, launched=False)
    raise _not_attached(server_id, share_id)


def _not_attached(server_id: str, share_id: str) -> errors.NotFound:
    return errors.NotFound(f"Share {share_id} is not attached to server {server_id}.")
