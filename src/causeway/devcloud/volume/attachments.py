"""/v3/{project}/attachments: uses of volumes.

As in Block Storage, an attachment is `reserved` without a connector, `attaching` with one, and `attached` after `os-complete`.
A volume that is not multiattach may have a second attachment only for the same instance (which moves to another host). The
second one may not get a connector by an update while either has one.
"""

from typing import Any
from uuid import UUID

from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import ApiError, bad_request, conflict, not_found
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.volume import Attachment, Volume
from causeway.devcloud.volume import views, volumes
from causeway.devcloud.volume.versions import ATTACHMENTS, COMPLETE
from causeway.devcloud.web import Call

MODES = ("ro", "rw")


def _find(call: Call, attachment_id: str) -> Attachment:
    _require(call, ATTACHMENTS)
    row = call.session.get(Attachment, attachment_id)
    if row is None or not call.caller.owns(row.project_id):
        raise not_found(f"Volume attachment could not be found with filter: attachment_id = {attachment_id}.")
    return row


def _require(call: Call, version: tuple[int, int]) -> None:
    if call.microversion < version:
        raise not_found("The resource could not be found.")


def _listed(call: Call) -> list[Attachment]:
    _require(call, ATTACHMENTS)
    params = call.request.params
    query = select(Attachment).order_by(Attachment.created_at)
    for name, column in (("volume_id", Attachment.volume_id), ("instance_id", Attachment.instance_id)):
        if name in params:
            query = query.where(column == params[name])
    everybody = call.caller.is_admin and str(params.get("all_tenants", "0")).lower() in ("1", "true")
    rows = [row for row in call.session.scalars(query) if everybody or row.project_id == call.caller.project_id]
    if "status" in params:
        rows = [row for row in rows if row.status == params["status"]]
    return views.page(call, rows)


def list_summary(call: Call, **_: str) -> Json:
    return {"attachments": [views.attachment_summary(row) for row in _listed(call)]}


def list_detail(call: Call, **_: str) -> Json:
    return {"attachments": [views.attachment(call, row) for row in _listed(call)]}


def show(call: Call, attachment_id: str, **_: str) -> Json:
    return {"attachment": views.attachment(call, _find(call, attachment_id))}


def create(call: Call, **_: str) -> Json:
    _require(call, ATTACHMENTS)
    given = call.body("attachment")
    volume = volumes.find(call, given.get("volume_uuid"))
    instance_id = _uuid(given.get("instance_uuid"))
    connector = _connector(given["connector"]) if given.get("connector") else None
    _reserve(volume, instance_id)
    row = Attachment(
        volume_id=volume.id,
        project_id=volume.project_id,
        instance_id=instance_id,
        status="reserved",
        mode=_mode(given, connector) or "null",
        connector={},
        created_at=now(),
    )
    volume.attachments.append(row)
    if connector is not None:
        _connect(row, connector)
    settle(volume)
    call.session.flush()
    return {"attachment": views.attachment(call, row)}


def _reserve(volume: Volume, instance_id: str | None) -> None:
    if "error" in volume.status:
        raise bad_request(
            "Invalid volume: Volume attachments can not be created if the volume is in an error state. "
            f"The Volume {volume.id} currently has a status of: {volume.status}"
        )
    if volume.status == "available" or (volume.multiattach and volume.status == "in-use"):
        return
    moves = volume.status in ("in-use", "reserved") and instance_id is not None
    if moves and any(each.instance_id == instance_id for each in volume.attachments):
        return
    expected = "available or in-use or downloading" if volume.multiattach else "available or downloading"
    raise bad_request(
        f"Invalid volume: Volume {volume.id} status must be {expected} to reserve, "
        f"but the current status is {volume.status}."
    )


def update(call: Call, attachment_id: str, **_: str) -> Json:
    row = _find(call, attachment_id)
    given = call.body("attachment")
    connector = _connector(given.get("connector"))
    volume = row.volume
    if "error" in volume.status:
        raise bad_request(
            "Invalid volume: Volume attachments can not be updated if the volume is in an error state. "
            f"The Volume {volume.id} currently has a status of: {volume.status}"
        )
    if not volume.multiattach and len(volume.attachments) > 1 and any(each.connector for each in volume.attachments):
        raise conflict(f"Invalid volume: duplicate connectors detected on volume {volume.id}")
    row.mode = _mode(given, connector) or row.mode
    _connect(row, connector)
    settle(volume)
    return {"attachment": views.attachment(call, row)}


def delete(call: Call, attachment_id: str, **_: str) -> Json:
    row = _find(call, attachment_id)
    volume = row.volume
    if row.connector and row.instance_id and not call.caller.is_admin and not _from_service(call):
        raise conflict(f"Detach volume from instance {row.instance_id} using the Compute API")
    remove(call, row)
    return {"attachments": [views.attachment_summary(each) for each in volume.attachments]}


def _from_service(call: Call) -> bool:
    service = call.cloud.tokens.check(call.request.get_header("X-Service-Token"))
    return service is not None and service.is_service


def remove(call: Call, row: Attachment) -> None:
    volume = row.volume
    volume.attachments.remove(row)
    call.session.flush()
    settle(volume)


def act(call: Call, attachment_id: str, **_: str) -> None:
    row = _find(call, attachment_id)
    body = call.body()
    if list(body) != ["os-complete"]:
        raise bad_request(f"There is no such action: {', '.join(body) or 'none given'}")
    _require(call, COMPLETE)
    if row.status == "attached":
        return
    row.status, row.attached_at = "attached", now()
    settle(row.volume)


def _connect(row: Attachment, connector: Json) -> None:
    row.connector = connector
    if row.mode == "null":
        row.mode = "ro" if row.volume and row.volume.readonly else "rw"
    if row.status == "reserved":
        row.status = "attaching"


def settle(volume: Volume) -> None:
    """Sets the volume's status according to its attachments."""
    statuses = {each.status for each in volume.attachments}
    if "attached" in statuses:
        volume.status = "in-use"
    elif "attaching" in statuses:
        volume.status = "attaching"
    elif "reserved" in statuses:
        volume.status = "reserved"
    else:
        volume.status = "available"
    volume.updated_at = now()


def _connector(value: Any) -> Json:
    if not isinstance(value, dict) or not value:
        raise bad_request("Invalid input: a connector object is needed.")
    if not isinstance(value.get("host"), str) or not value["host"]:
        raise bad_request("Invalid input: the connector needs a 'host'.")
    return value


def _mode(given: Json, connector: Json | None) -> str | None:
    mode = given.get("mode") or (connector or {}).get("mode")
    if mode is not None and mode not in MODES:
        raise ApiError(400, f"Invalid attach mode '{mode}'; it must be ro or rw.")
    return mode


def _uuid(value: Any) -> str | None:
    if value is None:
        return None
    try:
        return str(UUID(str(value)))
    except ValueError as error:
        raise bad_request(f"Invalid input for field/attribute instance_uuid. Value: {value}.") from error
