"""``/os-volumes`` and ``/os-snapshots``. Source: Compute API reference, "Volumes", "Volume snapshots" (deprecated)."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.answers import proxies as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.proxies.forward import WINDOW, ask, window
from causeway.api.request import ApiRequest, Response, VersionedSchemas, handler
from causeway.api.schemas import common

RULE = "os_compute_api:os-volumes:"
VOLUMES, VOLUME = "/v3/volumes", "/v3/volumes/{volume_id}"
SNAPSHOTS, SNAPSHOT = "/v3/snapshots", "/v3/snapshots/{snapshot_id}"
_CREATE: VersionedSchemas = [
    (
        1,
        None,
        common.body(
            "volume",
            common.properties(
                ["size"],
                size={"type": ["integer", "string"], "pattern": "^[0-9]+$", "minimum": 1, "maxLength": 255},
                display_name=common.ANY_STRING,
                display_description=common.ANY_STRING,
                volume_type=common.ANY_STRING,
                metadata={"type": "object"},
                snapshot_id=common.ANY_STRING,
                availability_zone=common.ANY_STRING,
            ),
        ),
    )
]
_SNAPSHOT: VersionedSchemas = [
    (
        1,
        None,
        common.body(
            "snapshot",
            common.properties(
                ["volume_id"],
                volume_id=common.ANY_STRING,
                force=common.BOOLEAN,
                display_name=common.ANY_STRING,
                display_description=common.ANY_STRING,
            ),
        ),
    )
]


def _call(request: ApiRequest, method: str, route: str, what: str, **more: Any) -> Any:
    return ask(request, request.services.volumes, method, route, what, **more)


def _seconds(time: str) -> str:
    return time.partition(".")[0] + "Z"


def _view(volume: dict[str, Any]) -> dict[str, Any]:
    attachments = [
        {key: value for key, value in attachment.items() if value is not None}
        for attachment in (
            {
                "id": volume["id"],
                "volumeId": volume["id"],
                "serverId": each["server_id"],
                "device": each["device"],
            }
            for each in volume["attachments"]
            if each["server_id"]
        )
    ]
    return {
        "id": volume["id"],
        "status": volume["status"],
        "size": volume["size"],
        "availabilityZone": volume["availability_zone"] or "",
        "createdAt": _seconds(volume["created_at"]),
        "displayName": volume["name"],
        "displayDescription": volume["description"],
        "volumeType": volume["volume_type"],
        "snapshotId": volume["snapshot_id"],
        "metadata": volume["metadata"],
        # As in Nova: one empty attachment if there is none.
        "attachments": attachments[:1] or [{}],
    }


def _list(request: ApiRequest) -> Response:
    found = _call(request, "GET", VOLUMES + "/detail", "list volumes")["volumes"]
    return Response(200, {"volumes": [_view(volume) for volume in window(request, found)]})


def _missing(volume_id: str) -> errors.VolumeNotFound:
    return errors.VolumeNotFound(f"Volume {volume_id} could not be found.")


@handler(query=WINDOW, answer=answers.VOLUMES)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "list")
    return _list(request)


@handler(query=WINDOW, answer=answers.VOLUMES)
def detail(request: ApiRequest) -> Response:
    request.authorize(RULE + "detail")
    return _list(request)


@handler(answer=answers.VOLUME)
def show(request: ApiRequest, volume_id: str) -> Response:
    request.authorize(RULE + "show")
    found = _call(request, "GET", VOLUME, f"show volume {volume_id}", missing=_missing(volume_id), volume_id=volume_id)
    return Response(200, {"volume": _view(found["volume"])})


@handler(body=_CREATE, answer=answers.VOLUME)
def create(request: ApiRequest) -> Response:
    request.authorize(RULE + "create")
    given = request.body["volume"]
    names = {
        "display_name": "name",
        "display_description": "description",
        "volume_type": "volume_type",
        "metadata": "metadata",
        "snapshot_id": "snapshot_id",
        "availability_zone": "availability_zone",
    }
    wanted = {theirs: given[ours] for ours, theirs in names.items() if given.get(ours) is not None}
    body = {"volume": wanted | {"size": int(given["size"])}}
    made = _call(request, "POST", VOLUMES, "make a volume", body=body)["volume"]
    return Response(200, {"volume": _view(made)}, {"Location": request.self_url(f"/os-volumes/{made['id']}")})


@handler(statuses=(202,), answer=EMPTY)
def delete(request: ApiRequest, volume_id: str) -> Response:
    request.authorize(RULE + "delete")
    what = f"delete volume {volume_id}"
    _call(request, "DELETE", VOLUME, what, missing=_missing(volume_id), volume_id=volume_id)
    return Response(202)


# snapshots


def _snapshot_view(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": snapshot["id"],
        "volumeId": snapshot["volume_id"],
        "status": snapshot["status"],
        "size": snapshot["size"],
        "createdAt": _seconds(snapshot["created_at"]),
        "displayName": snapshot["name"],
        "displayDescription": snapshot["description"],
    }


def _snapshots(request: ApiRequest) -> Response:
    found = _call(request, "GET", SNAPSHOTS + "/detail", "list snapshots")["snapshots"]
    return Response(200, {"snapshots": [_snapshot_view(each) for each in window(request, found)]})


@handler(query=WINDOW, answer=answers.SNAPSHOTS)
def snapshot_index(request: ApiRequest) -> Response:
    request.authorize(RULE + "snapshots:list")
    return _snapshots(request)


@handler(query=WINDOW, answer=answers.SNAPSHOTS)
def snapshot_detail(request: ApiRequest) -> Response:
    request.authorize(RULE + "snapshots:detail")
    return _snapshots(request)


@handler(answer=answers.SNAPSHOT)
def snapshot_show(request: ApiRequest, snapshot_id: str) -> Response:
    request.authorize(RULE + "snapshots:show")
    found = _call(request, "GET", SNAPSHOT, f"show snapshot {snapshot_id}", snapshot_id=snapshot_id)
    return Response(200, {"snapshot": _snapshot_view(found["snapshot"])})


@handler(body=_SNAPSHOT, answer=answers.SNAPSHOT)
def snapshot_create(request: ApiRequest) -> Response:
    request.authorize(RULE + "snapshots:create")
    given = request.body["snapshot"]
    body = {
        "snapshot": {
            "volume_id": given["volume_id"],
            "force": common.to_bool(given.get("force", False)),
            "name": given.get("display_name"),
            "description": given.get("display_description"),
        }
    }
    made = _call(request, "POST", SNAPSHOTS, "make a snapshot", body=body)["snapshot"]
    return Response(200, {"snapshot": _snapshot_view(made)})


@handler(statuses=(202,), answer=EMPTY)
def snapshot_delete(request: ApiRequest, snapshot_id: str) -> Response:
    request.authorize(RULE + "snapshots:delete")
    _call(request, "DELETE", SNAPSHOT, f"delete snapshot {snapshot_id}", snapshot_id=snapshot_id)
    return Response(202)
