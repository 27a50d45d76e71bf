"""/v3/{project}/volume-transfers, and /os-volume-transfer of before 3.55: a volume goes to another project."""

import secrets

from sqlalchemy import select

from causeway.devcloud.access.passwords import check_password, hash_password
from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, not_found
from causeway.devcloud.tables.base import new_id, now
from causeway.devcloud.tables.volume import Snapshot, Volume, VolumeTransfer
from causeway.devcloud.volume import views, volumes
from causeway.devcloud.web import Call

AWAITING = "awaiting-transfer"


def list_summary(call: Call, **_: str) -> Json:
    return {"transfers": [_summary(call, row) for row in _listed(call)]}


def list_detail(call: Call, **_: str) -> Json:
    return {"transfers": [_detail(call, row) for row in _listed(call)]}


def show(call: Call, transfer_id: str, **_: str) -> Json:
    return {"transfer": _detail(call, _own(call, transfer_id))}


def create(call: Call, **_: str) -> Json:
    given = call.body("transfer")
    volume = volumes.find(call, given.get("volume_id"))
    if volume.status != "available" or volume.attachments:
        raise bad_request("Invalid volume: status must be available")
    key = secrets.token_hex(8)
    row = VolumeTransfer(
        id=new_id(),
        volume_id=volume.id,
        name=volumes.text(given, "name", None),
        key_hash=hash_password(key),
        with_snapshots=not given.get("no_snapshots", False),
        created_at=now(),
    )
    volume.status = AWAITING
    call.session.add(row)
    call.session.flush()
    return {"transfer": {**_detail(call, row), "auth_key": key}}


def accept(call: Call, transfer_id: str, **_: str) -> Json:
    row = _find(call, transfer_id)
    key = call.body("accept").get("auth_key")
    if not isinstance(key, str) or not check_password(key, row.key_hash):
        raise bad_request(f"Invalid auth key: Attempt to transfer {transfer_id} with invalid auth key.")
    volume = call.session.get_one(Volume, row.volume_id)
    if volume.status != AWAITING:
        raise bad_request(f"Invalid volume: Volume {volume.id} is {volume.status}, not {AWAITING}.")
    owner = {"project_id": call.project_id, "user_id": call.caller.user_id}
    moved: list[Volume | Snapshot] = [volume]
    if row.with_snapshots:
        moved += call.session.scalars(select(Snapshot).where(Snapshot.volume_id == volume.id))
    for each in moved:
        each.project_id, each.user_id = owner["project_id"], owner["user_id"]
    volume.status, volume.updated_at = "available", now()
    body = {"transfer": _summary(call, row)}
    call.session.delete(row)
    return body


def delete(call: Call, transfer_id: str, **_: str) -> None:
    row = _own(call, transfer_id)
    volume = call.session.get_one(Volume, row.volume_id)
    if volume.status == AWAITING:
        volume.status = "available"
    call.session.delete(row)


def _listed(call: Call) -> list[VolumeTransfer]:
    query = select(VolumeTransfer).join(Volume, Volume.id == VolumeTransfer.volume_id)
    everybody = call.caller.is_admin and str(call.request.params.get("all_tenants", "0")).lower() in ("1", "true")
    if not everybody:
        query = query.where(Volume.project_id == call.caller.project_id)
    return views.page(call, list(call.session.scalars(query.order_by(VolumeTransfer.created_at))))


def _own(call: Call, transfer_id: str) -> VolumeTransfer:
    """A transfer that the caller's project offers; ApiError 404 otherwise."""
    row = _find(call, transfer_id)
    if not call.caller.owns(call.session.get_one(Volume, row.volume_id).project_id):
        raise _unknown(transfer_id)
    return row


def _find(call: Call, transfer_id: str) -> VolumeTransfer:
    row = call.session.get(VolumeTransfer, transfer_id)
    if row is None:
        raise _unknown(transfer_id)
    return row


def _unknown(transfer_id: str) -> Exception:
    return not_found(f"Transfer {transfer_id} could not be found.")


def _summary(call: Call, row: VolumeTransfer) -> Json:
    return {
        "id": row.id,
        "volume_id": row.volume_id,
        "name": row.name,
        "links": views.links(call, "volume-transfers", row.id),
    }


def _detail(call: Call, row: VolumeTransfer) -> Json:
    body = {**_summary(call, row), "created_at": row.created_at}
    if call.microversion >= (3, 55):
        body["no_snapshots"] = not row.with_snapshots
    if call.microversion >= (3, 57):
        source = call.session.get_one(Volume, row.volume_id).project_id
        body |= {"accepted": False, "source_project_id": source, "destination_project_id": None}
    return body
