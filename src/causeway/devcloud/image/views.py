"""Images as the API shows them, and who may see them."""

from causeway.devcloud.bodies import Json
from causeway.devcloud.context import Caller
from causeway.devcloud.errors import ApiError, forbidden, not_found
from causeway.devcloud.tables.image import Image
from causeway.devcloud.web import Call

VISIBILITIES = ("public", "private", "shared", "community")


def image(row: Image) -> Json:
    return {
        **row.properties,
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "visibility": row.visibility,
        "owner": row.owner,
        "protected": row.protected,
        "os_hidden": row.os_hidden,
        "disk_format": row.disk_format,
        "container_format": row.container_format,
        "min_disk": row.min_disk,
        "min_ram": row.min_ram,
        "size": row.size,
        "virtual_size": row.virtual_size,
        "checksum": row.checksum,
        "os_hash_algo": row.os_hash_algo,
        "os_hash_value": row.os_hash_value,
        "created_at": stamp(row.created_at),
        "updated_at": stamp(row.updated_at),
        "tags": row.tags,
        "self": f"/v2/images/{row.id}",
        "file": f"/v2/images/{row.id}/file",
        "schema": "/v2/schemas/image",
    }


def stamp(time: str) -> str:
    return time[:19] + "Z"


def may_see(caller: Caller, row: Image) -> bool:
    if caller.owns(row.owner) or row.visibility in ("public", "community"):
        return True
    return row.visibility == "shared" and any(member.member_id == caller.project_id for member in row.members)


def find(call: Call, image_id: str) -> Image:
    """An image that the caller may see; ApiError 404 otherwise."""
    row = call.session.get(Image, image_id)
    if row is None or not may_see(call.caller, row):
        raise missing(image_id)
    return row


def find_own(call: Call, image_id: str) -> Image:
    """An image that the caller may change; ApiError 403 for one that is only visible."""
    row = find(call, image_id)
    if not call.caller.owns(row.owner):
        raise forbidden("You are not permitted to modify this image.")
    return row


def missing(image_id: str) -> ApiError:
    return not_found(f"Failed to find image {image_id}")
