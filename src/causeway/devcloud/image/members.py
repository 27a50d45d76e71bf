"""/v2/images/{id}/members: sharing with single projects."""

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, conflict, forbidden, not_found
from causeway.devcloud.image import views
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.image import Image, ImageMember
from causeway.devcloud.web import Call

STATUSES = ("pending", "accepted", "rejected")


def list_members(call: Call, image_id: str) -> Json:
    row = views.find(call, image_id)
    if row.visibility != "shared":
        raise forbidden(f"Not allowed to list members for image {image_id}: Only shared images have members.")
    members = [
        _view(member)
        for member in row.members
        if call.caller.owns(row.owner) or member.member_id == call.caller.project_id
    ]
    return {"members": members, "schema": "/v2/schemas/members"}


def show(call: Call, image_id: str, member_id: str) -> Json:
    return _view(_find(call, views.find(call, image_id), member_id))


def create(call: Call, image_id: str) -> Json:
    row = views.find_own(call, image_id)
    if row.visibility != "shared":
        raise forbidden("Only shared images have members.")
    member_id = call.body().get("member")
    if not isinstance(member_id, str) or not member_id:
        raise bad_request("'member' must be the id of a project.")
    if any(member.member_id == member_id for member in row.members):
        raise conflict(f"Image member {member_id} already exists.")
    member = ImageMember(image_id=row.id, member_id=member_id)
    row.members.append(member)
    call.session.flush()
    return _view(member)


def update(call: Call, image_id: str, member_id: str) -> Json:
    row = views.find(call, image_id)
    member = _find(call, row, member_id)
    if call.caller.project_id != member_id and not call.caller.is_admin:
        raise forbidden("Only the member itself may accept or reject an image.")
    status = call.body().get("status")
    if status not in STATUSES:
        raise bad_request(f"'status' must be one of {', '.join(STATUSES)}.")
    member.status, member.updated_at = status, now()
    return _view(member)


def delete(call: Call, image_id: str, member_id: str) -> None:
    row = views.find_own(call, image_id)
    row.members.remove(_find(call, row, member_id))


def _find(call: Call, row: Image, member_id: str) -> ImageMember:
    for member in row.members:
        if member.member_id == member_id and (call.caller.owns(row.owner) or call.caller.project_id == member_id):
            return member
    raise not_found(f"{member_id} not found in the member list of the image {row.id}.")


def _view(member: ImageMember) -> Json:
    return {
        "image_id": member.image_id,
        "member_id": member.member_id,
        "status": member.status,
        "created_at": views.stamp(member.created_at),
        "updated_at": views.stamp(member.updated_at),
        "schema": "/v2/schemas/member",
    }
