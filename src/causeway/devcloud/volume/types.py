"""/v3/{project}/types."""

from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, conflict, not_found
from causeway.devcloud.tables.volume import Volume, VolumeType
from causeway.devcloud.volume import views
from causeway.devcloud.web import Call

DEFAULT_TYPE = "__DEFAULT__"


def find_type(call: Call, name_or_id: str) -> VolumeType:
    row = call.session.get(VolumeType, name_or_id)
    if row is None:
        row = call.session.scalars(select(VolumeType).where(VolumeType.name == name_or_id)).first()
    if row is None:
        raise not_found(f"Volume type {name_or_id} could not be found.")
    return row


def list_types(call: Call, **_: str) -> Json:
    rows = call.session.scalars(select(VolumeType).order_by(VolumeType.name))
    return {"volume_types": [views.volume_type(call, row) for row in rows]}


def show(call: Call, type_id: str, **_: str) -> Json:
    return {"volume_type": views.volume_type(call, find_type(call, DEFAULT_TYPE if type_id == "default" else type_id))}


def create(call: Call, **_: str) -> Json:
    call.require_admin()
    given = call.body("volume_type")
    name = given.get("name")
    if not isinstance(name, str) or not name:
        raise bad_request("A volume type needs a name.")
    if call.session.scalars(select(VolumeType).where(VolumeType.name == name)).first() is not None:
        raise conflict(f"Volume Type {name} already exists.")
    row = VolumeType(name=name, description=given.get("description"), extra_specs=given.get("extra_specs") or {})
    call.session.add(row)
    call.session.flush()
    return {"volume_type": views.volume_type(call, row)}


def delete(call: Call, type_id: str, **_: str) -> None:
    call.require_admin()
    row = find_type(call, type_id)
    if call.session.scalars(select(Volume.id).where(Volume.volume_type_id == row.id)).first() is not None:
        raise bad_request(f"Volume Type {row.id} deletion is not allowed with volumes present with the type.")
    call.session.delete(row)


def show_extra_specs(call: Call, type_id: str, **_: str) -> Json:
    return {"extra_specs": find_type(call, type_id).extra_specs}


def set_extra_specs(call: Call, type_id: str, **_: str) -> Json:
    call.require_admin()
    row = find_type(call, type_id)
    row.extra_specs = {**row.extra_specs, **(call.body().get("extra_specs") or {})}
    return {"extra_specs": row.extra_specs}
