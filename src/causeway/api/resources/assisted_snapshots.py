"""``/os-assisted-volume-snapshots``: snapshots of volumes that a volume service asks hypervisors for."""

from __future__ import annotations

from typing import Any

import msgspec

from causeway import errors
from causeway.api.answers import server_parts as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, JsonSchema, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.api.servers import hosts, loading
from causeway.api.servers.loading import Home
from causeway.model import operations, server_actions
from causeway.model.file_names import is_file_name
from causeway.model.server_actions import ServerAction
from causeway.model.states import TaskState
from causeway.operations.volume_snapshots import SnapshotMemory

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


@handler(body=_CREATE, statuses=(200,), answer=answers.ASSISTED_SNAPSHOT)
def create(request: ApiRequest) -> Response:
    request.authorize(RULE + "create", {})
    wanted = request.body["snapshot"]
    volume_id, info = wanted["volume_id"], wanted["create_info"]
    _check_name(info["new_file"])
    home, action = _home(request, RULE + "create", volume_id)
    _ask(
        request,
        home,
        action,
        operations.SNAPSHOT_VOLUME,
        SnapshotMemory(volume_id, info["snapshot_id"], info["new_file"]),
    )
    return Response(200, {"snapshot": {"id": info.get("id"), "volumeId": volume_id}})


@handler(query=_DELETE, statuses=(204,), answer=EMPTY)
def delete(request: ApiRequest, snapshot_id: str) -> Response:
    request.authorize(RULE + "delete", {})
    info = _decoded(request.param("delete_info"))
    if not isinstance(info, dict) or not isinstance(info.get("volume_id"), str):
        raise errors.BadRequest("The query parameter delete_info must be a JSON object with a volume_id.")
    merged, into = info.get("file_to_merge"), info.get("merge_target_file")
    for name in (merged, into):
        if name is not None:
            _check_name(name)
    if into is not None and merged is None:
        raise errors.BadRequest("delete_info names a merge_target_file, but no file_to_merge.")
    home, action = _home(request, RULE + "delete", info["volume_id"])
    memory = SnapshotMemory(info["volume_id"], snapshot_id, merged=merged, into=into)
    _ask(request, home, action, operations.MERGE_VOLUME_FILES, memory)
    return Response(204)


def _check_name(name: Any) -> None:
    """Raises BadRequest if a name is not that of a file beside the volume's own: a path could lead anywhere on the host."""
    if not isinstance(name, str) or not is_file_name(name):
        raise errors.BadRequest("The files of a volume are given by their names, without a folder.")


def _home(request: ApiRequest, rule: str, volume_id: str) -> tuple[Home, ServerAction]:
    """The server that has the volume, and the action on it. Raises BadRequest if it isn't allowed, even for a conflict."""
    try:
        volume = request.services.volumes.show(request.context, volume_id)
    except errors.VolumeNotFound as missing:
        raise errors.BadRequest(missing.message) from missing
    servers = sorted({each["server_id"] for each in volume.attachments if each.get("server_id")})
    if volume.multiattach or len(servers) != 1:
        reason = "it is multiattach" if volume.multiattach else "no server has it"
        raise errors.BadRequest(f"Invalid volume: no assisted snapshot can be made of volume {volume_id}: {reason}.")
    action = server_actions.SNAPSHOT_VOLUME
    try:
        home = loading.load_anyones(request, servers[0], rule, action.name)
        if home.instance.task_state is TaskState.IMAGE_SNAPSHOT_PENDING:
            action = server_actions.SNAPSHOT_FOR_IMAGE
        loading.check_action(request, home.instance, action)
        hosts.check_up(request, loading.check_host(home.instance), home.cell_uuid)
    except (errors.Conflict, errors.ServerNotFound) as refusal:
        raise errors.BadRequest(refusal.message) from refusal
    return home, action


def _ask(request: ApiRequest, home: Home, action: ServerAction, recipe: str, memory: SnapshotMemory) -> None:
    try:
        loading.ask_for(request, home, action, recipe, memory)
    except errors.Conflict as refusal:
        raise errors.BadRequest(refusal.message) from refusal


def _decoded(text: str | None) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
