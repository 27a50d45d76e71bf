"""/v3/{project}/snapshots."""

from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, not_found
from causeway.devcloud.tables.base import new_id, now
from causeway.devcloud.tables.volume import Snapshot, SnapshotProgress
from causeway.devcloud.volume import files, views, volumes
from causeway.devcloud.web import Call


def _find(call: Call, snapshot_id: str) -> Snapshot:
    row = call.session.get(Snapshot, snapshot_id)
    if row is None or not call.caller.owns(row.project_id):
        raise not_found(f"Snapshot {snapshot_id} could not be found.")
    return row


def list_snapshots(call: Call, **_: str) -> Json:
    params = call.request.params
    rows = list(call.session.scalars(select(Snapshot).order_by(Snapshot.created_at.desc())))
    everybody = call.caller.is_admin and str(params.get("all_tenants", "0")).lower() in ("1", "true")
    rows = [row for row in rows if everybody or row.project_id == call.caller.project_id]
    for name in ("name", "status", "volume_id"):
        if name in params:
            rows = [row for row in rows if getattr(row, name) == params[name]]
    return {"snapshots": [views.snapshot(call, row) for row in views.page(call, rows)]}


def show(call: Call, snapshot_id: str, **_: str) -> Json:
    return {"snapshot": views.snapshot(call, _find(call, snapshot_id))}


def create(call: Call, **_: str) -> Json:
    given = call.body("snapshot")
    volume = volumes.find(call, given.get("volume_id"))
    forced = str(given.get("force", False)).lower() == "true" or call.microversion >= (3, 66)
    if volume.status not in (("available", "in-use") if forced else ("available",)):
        raise bad_request(
            f"Invalid volume: Volume {volume.id} status must be available, but current status is: {volume.status}."
        )
    row = Snapshot(
        id=new_id(),
        volume_id=volume.id,
        project_id=volume.project_id,
        user_id=call.caller.user_id,
        name=given.get("name"),
        description=given.get("description"),
        size=volume.size,
        status="creating",
        properties=given.get("metadata") or {},
        created_at=now(),
        updated_at=now(),
    )
    call.session.add(row)
    call.session.flush()
    source, target = files.volume_path(call.cloud, volume.id), files.snapshot_path(call.cloud, row.id)
    snapshot_id, size = row.id, row.size
    call.after_commit.append(
        lambda: call.cloud.volume_jobs.fill(Snapshot, snapshot_id, lambda: files.copy(source, target, size))
    )
    return {"snapshot": views.snapshot(call, row)}


def update(call: Call, snapshot_id: str, **_: str) -> Json:
    row = _find(call, snapshot_id)
    given = call.body("snapshot")
    for name in ("name", "description"):
        if name in given:
            setattr(row, name, given[name])
    row.updated_at = now()
    return {"snapshot": views.snapshot(call, row)}


def delete(call: Call, snapshot_id: str, **_: str) -> None:
    row = _find(call, snapshot_id)
    if row.status not in ("available", "error"):
        raise bad_request(f"Invalid snapshot: Snapshot status must be available or error, but is {row.status}.")
    path = files.snapshot_path(call.cloud, row.id)
    call.session.delete(row)
    call.after_commit.append(lambda: path.unlink(missing_ok=True))


# The statuses that Compute may set for a snapshot in these states.
REPORTED = {"creating": ("creating", "available", "error"), "deleting": ("deleting", "error_deleting")}


def act(call: Call, snapshot_id: str, **_: str) -> None:
    call.require_admin()
    row, body = _find(call, snapshot_id), call.body()
    given = body.get("os-update_snapshot_status") or body.get("os-reset_status")
    if len(body) != 1 or not isinstance(given, dict) or not isinstance(given.get("status"), str):
        raise bad_request(f"There is no such action: {', '.join(body) or 'none given'}")
    status = given["status"]
    if "os-update_snapshot_status" in body and status not in REPORTED.get(row.status, ()):
        raise bad_request(f"Provided snapshot status {status} not allowed for snapshot with status {row.status}.")
    row.status, row.updated_at = status, now()
    if given.get("progress") or status == "creating":
        call.session.merge(SnapshotProgress(snapshot_id=row.id, progress=str(given.get("progress") or "0%")))
