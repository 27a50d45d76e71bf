"""/v3/{project}/volumes."""

import ast
from pathlib import Path
from typing import Any

from sqlalchemy import delete as delete_rows
from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import ApiError, bad_request, not_found
from causeway.devcloud.image import files as image_files
from causeway.devcloud.image.views import may_see as may_see_image
from causeway.devcloud.tables.base import new_id, now
from causeway.devcloud.tables.image import Image
from causeway.devcloud.tables.volume import Snapshot, Volume, VolumeTransfer, VolumeType
from causeway.devcloud.volume import files, keys_of_volumes, views
from causeway.devcloud.volume.types import find_type
from causeway.devcloud.web import Call

MAX_GIB = 1 << 20
DELETABLE = ("available", "error", "error_deleting", "error_restoring", "error_extending", "error_managing")
FILTERS = ("name", "status", "availability_zone", "bootable", "metadata")


def find(call: Call, volume_id: Any) -> Volume:
    """A volume of the caller's project; ApiError 404 otherwise."""
    row = call.session.get(Volume, volume_id) if isinstance(volume_id, str) else None
    if row is None or not call.caller.owns(row.project_id):
        raise not_found(f"Volume {volume_id} could not be found.", "itemNotFound")
    return row


def _listed(call: Call) -> list[Volume]:
    params = call.request.params
    rows = list(call.session.scalars(select(Volume).order_by(Volume.created_at.desc())))
    everybody = call.caller.is_admin and str(params.get("all_tenants", "0")).lower() in ("1", "true")
    if not everybody:
        rows = [row for row in rows if row.project_id == call.caller.project_id]
    elif params.get("project_id"):
        rows = [row for row in rows if row.project_id == params["project_id"]]
    for name in ("id", "name", "status", "availability_zone"):
        if name in params:
            rows = [row for row in rows if getattr(row, name) == params[name]]
    if "metadata" in params:
        wanted = _metadata_filter(str(params["metadata"]))
        rows = [row for row in rows if wanted.items() <= row.properties.items()]
    if "bootable" in params:
        rows = [row for row in rows if row.bootable == (str(params["bootable"]).lower() in ("true", "1"))]
    return views.page(call, rows)


def _metadata_filter(given: str) -> Json:
    """Reads the filter as Block Storage does: as a literal of Python."""
    try:
        return _metadata(ast.literal_eval(given))
    except (SyntaxError, ValueError) as error:
        raise bad_request(f"Invalid filter for metadata: {given}") from error


def list_summary(call: Call, **_: str) -> Json:
    return {"volumes": [views.volume_summary(call, row) for row in _listed(call)]}


def list_detail(call: Call, **_: str) -> Json:
    return {"volumes": [views.volume(call, row) for row in _listed(call)]}


def show_summary(call: Call, **_: str) -> Json:
    rows = [row for row in call.session.scalars(select(Volume)) if row.project_id == call.caller.project_id]
    return {"volume-summary": {"total_count": len(rows), "total_size": sum(row.size for row in rows), "metadata": {}}}


def show(call: Call, volume_id: str, **_: str) -> Json:
    return {"volume": views.volume(call, find(call, volume_id))}


def create(call: Call, **_: str) -> Json:
    given = call.body("volume")
    row = Volume(
        id=new_id(),
        name=text(given, "name", given.get("display_name")),
        description=text(given, "description", given.get("display_description")),
        project_id=call.project_id,
        user_id=call.caller.user_id,
        availability_zone=_zone(given),
        properties=_metadata(given.get("metadata")),
        image_metadata={},
        status="creating",
    )
    target = files.volume_path(call.cloud, row.id)
    source, disk_format, smallest = _source(call, given, row)
    row.size = _size(given, smallest)
    kind = _type(call, given)
    row.volume_type = kind
    row.multiattach = kind.extra_specs.get("multiattach") == "<is> True"
    call.session.add(row)
    call.session.flush()
    snapshot = call.session.get(Snapshot, row.snapshot_id) if row.snapshot_id else None
    encrypt = keys_of_volumes.make_for(call, row, snapshot.volume_id if snapshot is not None else row.source_volid)
    body = {"volume": views.volume(call, row)}
    volume_id, size = row.id, row.size
    if source is None:
        files.create_blank(target, size)
        encrypt(target)
        row.status = "available"
        return body
    origin = source

    def fill() -> None:
        files.convert(origin, target, disk_format, size)
        encrypt(target)

    call.after_commit.append(lambda: call.cloud.volume_jobs.fill(Volume, volume_id, fill))
    return body


def _source(call: Call, given: Json, row: Volume) -> tuple[Path | None, str, int]:
    """The source of a new volume: its file, its format, and the smallest size in GiB that holds it."""
    if given.get("imageRef"):
        return of_image(call, str(given["imageRef"]), row)
    if given.get("snapshot_id"):
        snapshot = call.session.get(Snapshot, str(given["snapshot_id"]))
        if snapshot is None or not call.caller.owns(snapshot.project_id):
            raise not_found(f"Snapshot {given['snapshot_id']} could not be found.")
        if snapshot.status != "available":
            raise bad_request(f"Snapshot {snapshot.id} is not available.")
        row.snapshot_id = snapshot.id
        origin = call.session.get(Volume, snapshot.volume_id)
        row.bootable = bool(origin and origin.bootable)
        row.image_metadata = dict(origin.image_metadata) if origin else {}
        return files.snapshot_path(call.cloud, snapshot.id), "raw", snapshot.size
    if given.get("source_volid"):
        origin = find(call, given["source_volid"])
        if origin.status not in ("available", "in-use"):
            raise bad_request(f"Volume {origin.id} is neither available nor in-use.")
        row.source_volid, row.bootable, row.image_metadata = origin.id, origin.bootable, dict(origin.image_metadata)
        return files.volume_path(call.cloud, origin.id), "raw", origin.size
    return None, "raw", 1


def of_image(call: Call, image_id: str, row: Volume) -> tuple[Path, str, int]:
    """`_source` for an image. Also describes the image in the volume's row."""
    image = call.session.get(Image, image_id)
    if image is None or not may_see_image(call.caller, image):
        raise bad_request(f"Invalid image identifier or unable to access requested image: {image_id}")
    if image.status != "active":
        raise bad_request(f"Image {image.id} is not active.")
    row.bootable = True
    row.image_metadata = {
        **{name: str(value) for name, value in image.properties.items() if value is not None},
        "image_id": image.id,
        "image_name": image.name or "",
        "disk_format": str(image.disk_format),
        "container_format": str(image.container_format),
        "min_disk": str(image.min_disk),
        "min_ram": str(image.min_ram),
        "size": str(image.size),
        "checksum": str(image.checksum),
    }
    smallest = max(image.min_disk, -(-(image.virtual_size or image.size or 0) // files.GIB))
    return image_files.path_of(call.cloud, image.id), str(image.disk_format), smallest


def _type(call: Call, given: Json) -> VolumeType:
    if given.get("volume_type"):
        return find_type(call, str(given["volume_type"]))
    row = call.session.scalars(select(VolumeType).where(VolumeType.name == "__DEFAULT__")).first()
    if row is None:
        raise ApiError(500, "The default volume type is missing.")
    return row


def _size(given: Json, smallest: int) -> int:
    size = given.get("size")
    if size is None and (given.get("snapshot_id") or given.get("source_volid")):
        return smallest
    if isinstance(size, str) and size.isdigit():
        size = int(size)
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= MAX_GIB:
        raise bad_request(f"Invalid input received: Volume size '{size}' must be an integer and greater than 0.")
    if size < smallest:
        raise bad_request(f"Invalid input received: Volume size {size}GB cannot be smaller than {smallest}GB.")
    return size


def text(given: Json, name: str, fallback: Any) -> str | None:
    """A text of a request, or the fallback if it is missing; ApiError 400 if it is longer than 255 characters."""
    value = given.get(name, fallback)
    if value is not None and (not isinstance(value, str) or len(value) > 255):
        raise bad_request(f"Invalid input for field/attribute {name}: it must be a text of up to 255 characters.")
    return value


def _zone(given: Json) -> str:
    zone = given.get("availability_zone") or "nova"
    if zone != "nova":
        raise bad_request(f"Availability zone '{zone}' is invalid.")
    return "nova"


def _metadata(value: Any) -> Json:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise bad_request("Invalid input for field/attribute metadata: it must be an object of texts.")
    return value


def update(call: Call, volume_id: str, **_: str) -> Json:
    row = find(call, volume_id)
    given = call.body("volume")
    for name in ("name", "description"):
        if name in given or f"display_{name}" in given:
            setattr(row, name, text(given, name, given.get(f"display_{name}")))
    if "metadata" in given:
        row.properties = _metadata(given["metadata"])
    row.updated_at = now()
    return {"volume": views.volume(call, row)}


def delete(call: Call, volume_id: str, **_: str) -> None:
    row = find(call, volume_id)
    snapshots = call.session.scalars(select(Snapshot.id).where(Snapshot.volume_id == row.id)).all()
    if row.status not in DELETABLE or row.attachments or snapshots:
        raise bad_request(
            "Invalid volume: Volume status must be available or error or error_restoring or error_extending or "
            "error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a "
            "transfer, or be disassociated from snapshots after volume transfer."
        )
    remove(call, row)


def remove(call: Call, row: Volume) -> None:
    path = files.volume_path(call.cloud, row.id)
    keys_of_volumes.delete_of(call, row.id)
    call.session.execute(delete_rows(VolumeTransfer).where(VolumeTransfer.volume_id == row.id))
    call.session.delete(row)
    call.after_commit.append(lambda: files.remove(path))


def show_metadata(call: Call, volume_id: str, **_: str) -> Json:
    return {"metadata": find(call, volume_id).properties}


def merge_metadata(call: Call, volume_id: str, **_: str) -> Json:
    row = find(call, volume_id)
    row.properties = {**row.properties, **_metadata(call.body().get("metadata"))}
    return {"metadata": row.properties}


def replace_metadata(call: Call, volume_id: str, **_: str) -> Json:
    row = find(call, volume_id)
    row.properties = _metadata(call.body().get("metadata"))
    return {"metadata": row.properties}


def delete_metadata(call: Call, volume_id: str, key: str, **_: str) -> None:
    row = find(call, volume_id)
    if key not in row.properties:
        raise not_found(f"Volume {volume_id} has no metadata with key {key}.")
    row.properties = {name: value for name, value in row.properties.items() if name != key}
