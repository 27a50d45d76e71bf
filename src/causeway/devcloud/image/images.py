"""/v2/images: create, list, show, update (JSON patch), delete, tags."""

from typing import Any
from uuid import UUID

from sqlalchemy import select

from causeway.devcloud.bodies import Json, read_json
from causeway.devcloud.errors import ApiError, bad_request, conflict, forbidden
from causeway.devcloud.image import files, views
from causeway.devcloud.tables.base import new_id, now
from causeway.devcloud.tables.image import Image
from causeway.devcloud.web import Call

DISK_FORMATS = ("ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop", "luks")
CONTAINER_FORMATS = ("ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed")
SETTABLE = (
    "name",
    "visibility",
    "disk_format",
    "container_format",
    "min_disk",
    "min_ram",
    "protected",
    "os_hidden",
    "tags",
    "owner",
)
READ_ONLY = (
    "id",
    "status",
    "size",
    "virtual_size",
    "checksum",
    "os_hash_algo",
    "os_hash_value",
    "created_at",
    "updated_at",
    "self",
    "file",
    "schema",
    "direct_url",
    "locations",
    "stores",
)
PATCH_TYPE = "application/openstack-images-v2."
FILTERS = (
    "id",
    "name",
    "status",
    "visibility",
    "owner",
    "disk_format",
    "container_format",
    "checksum",
    "os_hash_value",
)
MAX_LIMIT = 1000


def list_images(call: Call) -> Json:
    wanted: Json = dict(call.request.params)
    rows = [row for row in call.session.scalars(select(Image)) if _listed(call, row, wanted)]
    for key, direction in reversed(_sorting(call)):
        rows.sort(key=lambda row, key=key: _sort_key(getattr(row, key)), reverse=direction == "desc")  # type: ignore[misc]
    if "marker" in wanted:
        ids = [row.id for row in rows]
        if wanted["marker"] not in ids:
            raise bad_request(f"Invalid marker: image {wanted['marker']} could not be found.")
        rows = rows[ids.index(wanted["marker"]) + 1 :]
    limit = min(_number(wanted.get("limit", "25"), "limit"), MAX_LIMIT)
    body: Json = {
        "images": [views.image(row) for row in rows[:limit]],
        "first": "/v2/images",
        "schema": "/v2/schemas/images",
    }
    if len(rows) > limit > 0:
        query = "&".join(f"{key}={value}" for key, value in wanted.items() if key != "marker")
        body["next"] = f"/v2/images?marker={rows[limit - 1].id}" + (f"&{query}" if query else "")
    return body


def show(call: Call, image_id: str) -> Json:
    return views.image(views.find(call, image_id))


def create(call: Call) -> Json:
    given = call.body()
    row = Image(id=_new_image_id(call, given), owner=call.project_id, properties={}, tags=[], visibility="shared")
    for key, value in given.items():
        if key != "id":
            _set(call, row, key, value)
    call.session.add(row)
    call.session.flush()
    call.response.set_header("Location", f"{call.request.prefix}/v2/images/{row.id}")
    return views.image(row)


def update(call: Call, image_id: str) -> Json:
    if not (call.request.content_type or "").startswith(PATCH_TYPE):
        raise ApiError(415, "An update is an application/openstack-images-v2.1-json-patch document.")
    row = views.find_own(call, image_id)
    operations = read_json(call.request)
    if not isinstance(operations, list):
        raise bad_request("The request body must be a list of operations.")
    for operation in operations:
        _patch(call, row, operation)
    row.updated_at = now()
    return views.image(row)


def delete(call: Call, image_id: str) -> None:
    row = views.find_own(call, image_id)
    if row.protected:
        raise forbidden(f"Image {image_id} is protected and cannot be deleted.")
    path = files.path_of(call.cloud, image_id)
    call.session.delete(row)
    call.after_commit.append(lambda: path.unlink(missing_ok=True))


def deactivate(call: Call, image_id: str) -> None:
    _switch(call, image_id, "active", "deactivated")


def reactivate(call: Call, image_id: str) -> None:
    _switch(call, image_id, "deactivated", "active")


def add_tag(call: Call, image_id: str, tag: str) -> None:
    row = views.find_own(call, image_id)
    if tag not in row.tags:
        row.tags = [*row.tags, tag]


def delete_tag(call: Call, image_id: str, tag: str) -> None:
    row = views.find_own(call, image_id)
    if tag not in row.tags:
        raise ApiError(404, f"Image {image_id} has no tag {tag}.")
    row.tags = [each for each in row.tags if each != tag]


def _switch(call: Call, image_id: str, before: str, after: str) -> None:
    call.require_admin()
    row = views.find(call, image_id)
    if row.status not in (before, after):
        raise forbidden(f"Not allowed on an image in status {row.status}.")
    row.status = after


def _new_image_id(call: Call, given: Json) -> str:
    if "id" not in given:
        return new_id()
    try:
        image_id = str(UUID(str(given["id"])))
    except ValueError as error:
        raise bad_request("An image's id is a UUID.") from error
    if call.session.get(Image, image_id) is not None:
        raise conflict(f"Image ID {image_id} already exists!")
    return image_id


def _patch(call: Call, row: Image, operation: Any) -> None:
    if not isinstance(operation, dict) or operation.get("op") not in ("add", "replace", "remove"):
        raise bad_request("An operation is add, replace or remove.")
    path = operation.get("path")
    if not isinstance(path, str) or not path.startswith("/") or "/" in path[1:]:
        raise bad_request(f"Invalid path of an operation: {path!r}")
    key = path[1:].replace("~1", "/").replace("~0", "~")
    if operation["op"] == "remove":
        if key in SETTABLE or key in READ_ONLY:
            raise forbidden(f"Property {key} may not be removed.")
        if key not in row.properties:
            raise conflict(f"Property {key} does not exist.")
        row.properties = {name: value for name, value in row.properties.items() if name != key}
        return
    if "value" not in operation:
        raise bad_request(f"The operation on {path} has no value.")
    if operation["op"] == "replace" and key not in SETTABLE and key not in READ_ONLY and key not in row.properties:
        raise conflict(f"Property {key} does not exist.")
    _set(call, row, key, operation["value"])


def _set(call: Call, row: Image, key: str, value: Any) -> None:
    if key in READ_ONLY:
        raise forbidden(f"Attribute '{key}' is read-only.")
    if key not in SETTABLE:
        if value is not None and not isinstance(value, str):
            raise bad_request(f"The value of the property {key} must be text.")
        row.properties = {**row.properties, key: value}
        return
    _check(key, value)
    if key == "visibility" and value == "public" and not call.caller.is_privileged:
        raise forbidden("Only an administrator may make an image public.")
    if key == "owner" and value != row.owner and not call.caller.is_privileged:
        raise forbidden("You are not permitted to give this image to another project.")
    if key in ("disk_format", "container_format") and row.status not in (None, "queued"):
        raise forbidden(f"Attribute {key} can be only replaced for a queued image.")
    setattr(row, key, value)


def _check(key: str, value: Any) -> None:
    valid = True
    if key == "name":
        valid = value is None or (isinstance(value, str) and len(value) <= 255)
    elif key == "owner":
        valid = isinstance(value, str) and bool(value)
    elif key == "visibility":
        valid = value in views.VISIBILITIES
    elif key == "disk_format":
        valid = value is None or value in DISK_FORMATS
    elif key == "container_format":
        valid = value is None or value in CONTAINER_FORMATS
    elif key in ("min_disk", "min_ram"):
        valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2147483647
    elif key in ("protected", "os_hidden"):
        valid = isinstance(value, bool)
    elif key == "tags":
        valid = isinstance(value, list) and all(isinstance(tag, str) and len(tag) <= 255 for tag in value)
    if not valid:
        raise bad_request(f"Invalid value of '{key}': {value!r}")


def _listed(call: Call, row: Image, wanted: Json) -> bool:
    member_status = wanted.get("member_status", "accepted")
    visibility = wanted.get("visibility")
    if not call.caller.owns(row.owner) and row.visibility != "public":
        if row.visibility == "community":
            if visibility not in ("community", "all"):
                return False
        elif row.visibility != "shared" or not any(
            member.member_id == call.caller.project_id and member_status in ("all", member.status)
            for member in row.members
        ):
            return False
    hidden = str(wanted.get("os_hidden", "false")).lower() == "true"
    if row.os_hidden != hidden:
        return False
    for key, value in wanted.items():
        if key in FILTERS and not (key == "visibility" and value == "all"):
            if not _equals(str(getattr(row, key)), str(value)):
                return False
        elif key == "tag":
            if not set(value if isinstance(value, list) else [value]) <= set(row.tags):
                return False
        elif key == "protected":
            if row.protected != (str(value).lower() == "true"):
                return False
        elif key in ("size_min", "size_max"):
            size = row.size or 0
            if not (size >= _number(value, key) if key == "size_min" else size <= _number(value, key)):
                return False
        elif key not in NOT_PROPERTIES and row.properties.get(key) != value:
            return False
    return True


NOT_PROPERTIES = (
    *("limit", "marker", "sort", "sort_key", "sort_dir", "member_status", "os_hidden", "visibility"),
    *("created_at", "updated_at"),
)


def _equals(value: str, wanted: str) -> bool:
    if wanted.startswith("in:"):
        return value in wanted[3:].split(",")
    return value == wanted


def _sorting(call: Call) -> list[tuple[str, str]]:
    wanted = call.request.params
    pairs: list[tuple[str, str]] = []
    for item in str(wanted.get("sort", "")).split(","):
        key, _, direction = item.partition(":")
        if key:
            pairs.append((key, direction or "desc"))
    if not pairs:
        keys = wanted.get("sort_key", "created_at")
        directions = wanted.get("sort_dir", "desc")
        keys = keys if isinstance(keys, list) else [keys]
        directions = directions if isinstance(directions, list) else [directions] * len(keys)
        pairs = list(zip(keys, directions, strict=False))
    for key, direction in pairs:
        if key not in (*FILTERS, "size", "created_at", "updated_at") or direction not in ("asc", "desc"):
            raise bad_request(f"Invalid sort: {key}:{direction}")
    return [*pairs, ("id", "desc")]


def _sort_key(value: Any) -> tuple[bool, Any]:
    return (value is not None, value)


def _number(value: Any, name: str) -> int:
    if not str(value).isdigit():
        raise bad_request(f"{name} must be a number of 0 or more.")
    return int(value)
