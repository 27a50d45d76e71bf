"""/v3/{project}/volumes/{id}/action."""

from collections.abc import Callable
from typing import Any

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.volume import Volume
from causeway.devcloud.volume import attachments, files, migrations, volumes
from causeway.devcloud.web import Call

STATUSES = (
    *("creating", "available", "deleting", "error", "error_deleting", "attaching", "detaching", "in-use", "reserved"),
    *("maintenance", "error_extending", "downloading", "uploading", "retyping", "extending"),
)


def act(call: Call, volume_id: str, **_: str) -> Json | None:
    body = call.body()
    row = volumes.find(call, volume_id)
    name = next(iter(body), "")
    action = ACTIONS.get(name)
    if action is None or len(body) != 1:
        raise bad_request(f"There is no such action: {', '.join(body) or 'none given'}")
    given = body[name] if body[name] is not None else {}
    if not isinstance(given, dict):
        raise bad_request(f"The action {name} takes an object.")
    answer = action(call, row, given)
    row.updated_at = now()
    return answer


def _set_bootable(call: Call, row: Volume, given: Json) -> None:
    row.bootable = _boolean(given, "bootable")
    call.response.status = "200 OK"


def _update_readonly(_call: Call, row: Volume, given: Json) -> None:
    row.readonly = _boolean(given, "readonly")


def _extend(call: Call, row: Volume, given: Json) -> None:
    size = given.get("new_size")
    if isinstance(size, str) and size.isdigit():
        size = int(size)
    if not isinstance(size, int) or isinstance(size, bool) or size > volumes.MAX_GIB:
        raise bad_request("Invalid input for field/attribute new_size: it must be a number of GiB.")
    allowed = ("available", "in-use") if call.microversion >= (3, 42) else ("available",)
    if row.status not in allowed:
        raise bad_request(f"Invalid volume: Volume {row.id} status must be '{' or '.join(allowed)}' to extend.")
    if size <= row.size:
        raise bad_request(
            f"New size for extend must be greater than current size. (current: {row.size}, extended: {size})."
        )
    files.extend(files.volume_path(call.cloud, row.id), size)
    row.size = size


def _reimage(call: Call, row: Volume, given: Json) -> None:
    if call.microversion < (3, 68):
        raise bad_request("There is no such action: os-reimage")
    allowed = ("available", "error", "reserved") if given.get("reimage_reserved") else ("available", "error")
    if row.status not in allowed:
        raise bad_request(f"Invalid volume: Volume {row.id} status must be {' or '.join(allowed)} to be re-imaged.")
    before = "reserved" if row.status == "reserved" else "available"
    source, disk_format, smallest = volumes.of_image(call, str(given.get("image_id")), row)
    if smallest > row.size:
        raise bad_request(f"Invalid input received: Volume size {row.size}GB is smaller than the image's {smallest}GB.")
    row.status = "downloading"
    target, volume_id, size = files.volume_path(call.cloud, row.id), row.id, row.size
    call.after_commit.append(
        lambda: call.cloud.volume_jobs.fill(
            Volume, volume_id, lambda: files.convert(source, target, disk_format, size), becomes=before
        )
    )


def _reset_status(call: Call, row: Volume, given: Json) -> None:
    call.require_admin()
    if given.get("status") is not None:
        if given["status"] not in STATUSES:
            raise bad_request(f"Invalid status: {given['status']}")
        row.status = given["status"]
    if given.get("migration_status") is not None:
        migrations.set_status(call, row.id, str(given["migration_status"]))
    if given.get("attach_status") == "detached":
        row.attachments.clear()


def _detach(call: Call, row: Volume, given: Json) -> None:
    for each in list(row.attachments):
        if given.get("attachment_id") in (None, each.id):
            attachments.remove(call, each)


def _force_detach(call: Call, row: Volume, given: Json) -> None:
    call.require_admin()
    _detach(call, row, given)


def _force_delete(call: Call, row: Volume, _given: Json) -> None:
    call.require_admin()
    volumes.remove(call, row)


def _reserve(_call: Call, row: Volume, _given: Json) -> None:
    _from_to(row, "available", "attaching")


def _unreserve(_call: Call, row: Volume, _given: Json) -> None:
    if row.status == "attaching":
        row.status = "in-use" if row.attachments else "available"


def _begin_detaching(_call: Call, row: Volume, _given: Json) -> None:
    _from_to(row, "in-use", "detaching")


def _roll_detaching(_call: Call, row: Volume, _given: Json) -> None:
    if row.status == "detaching":
        row.status = "in-use"


def _set_image_metadata(_call: Call, row: Volume, given: Json) -> None:
    row.image_metadata = {**row.image_metadata, **{key: str(value) for key, value in given.get("metadata", {}).items()}}


def _from_to(row: Volume, before: str, after: str) -> None:
    if row.status != before:
        raise bad_request(f"Invalid volume: Volume status must be {before}, but is {row.status}.")
    row.status = after


def _boolean(given: Json, name: str) -> bool:
    value: Any = given.get(name)
    if str(value).lower() not in ("true", "false"):
        raise bad_request(f"Invalid input for field/attribute {name}: it must be true or false.")
    return str(value).lower() == "true"


ACTIONS: dict[str, Callable[[Call, Volume, Json], Json | None]] = {
    "os-migrate_volume_completion": migrations.complete,
    "os-set_bootable": _set_bootable,
    "os-update_readonly_flag": _update_readonly,
    "os-extend": _extend,
    "os-reimage": _reimage,
    "os-reset_status": _reset_status,
    "os-detach": _detach,
    "os-force_detach": _force_detach,
    "os-force_delete": _force_delete,
    "os-reserve": _reserve,
    "os-unreserve": _unreserve,
    "os-begin_detaching": _begin_detaching,
    "os-roll_detaching": _roll_detaching,
    "os-set_image_metadata": _set_image_metadata,
}
