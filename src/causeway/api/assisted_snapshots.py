"""``/os-assisted-volume-snapshots``: snapshots of volumes that a volume service asks hypervisors for."""

from __future__ import annotations

import json
from typing import Any

from causeway import errors
from causeway.api.answers.parts import NEVER
from causeway.api.request import ApiRequest, JsonSchema, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.api.unavailable import Unavailable

RULE = "os_compute_api:os-assisted-volume-snapshots:"
_TEXT: JsonSchema = {"type": "string", "minLength": 1}
_INFO = common.properties(
    ["snapshot_id", "type", "new_file"],
    snapshot_id=_TEXT,
    type={"type": "string", "enum": ["qcow2"]},
    new_file=_TEXT,
    id=_TEXT,
)
_CREATE: VersionedSchemas = [
    (
        1,
        None,
        common.body("snapshot", common.properties(["volume_id", "create_info"], volume_id=_TEXT, create_info=_INFO)),
    )
]
_QUERY = {"delete_info": common.many(common.ANY_STRING)}
_DELETE: VersionedSchemas = [(1, 74, common.query(_QUERY)), (75, None, common.query(_QUERY, strict=True))]


@handler(body=_CREATE, statuses=(), answer=NEVER)
def create(request: ApiRequest) -> Response:
    request.authorize(RULE + "create", {})
    raise Unavailable.CREATE_ASSISTED_SNAPSHOT.refusal(f"volume {request.body['snapshot']['volume_id']}")


@handler(query=_DELETE, statuses=(), answer=NEVER)
def delete(request: ApiRequest, snapshot_id: str) -> Response:
    request.authorize(RULE + "delete", {})
    info = _decoded(request.param("delete_info"))
    if not isinstance(info, dict) or "volume_id" not in info:
        raise errors.BadRequest("The query parameter delete_info must be a JSON object with a volume_id.")
    raise Unavailable.DELETE_ASSISTED_SNAPSHOT.refusal(f"snapshot {snapshot_id}")


def _decoded(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
