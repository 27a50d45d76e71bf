"""How the volumes of a type are encrypted, and a volume of it."""

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, not_found
from causeway.devcloud.tables.key import TypeEncryption, VolumeKey
from causeway.devcloud.volume import volumes
from causeway.devcloud.volume.types import find_type
from causeway.devcloud.web import Call


def show_of_type(call: Call, type_id: str, **_: str) -> Json:
    """An empty object for a type that has none, as Block Storage answers."""
    row = call.session.get(TypeEncryption, find_type(call, type_id).id)
    return {} if row is None else _of_type(row)


def create(call: Call, type_id: str, **_: str) -> Json:
    call.require_admin()
    kind, given = find_type(call, type_id), call.body("encryption")
    if not isinstance(given.get("provider"), str) or not given["provider"]:
        raise bad_request("An encryption needs a provider.")
    if call.session.get(TypeEncryption, kind.id) is not None:
        raise bad_request(f"Volume type encryption for type {kind.id} already exists.")
    row = TypeEncryption(
        volume_type_id=kind.id,
        provider=given["provider"],
        cipher=given.get("cipher"),
        key_size=given.get("key_size"),
        control_location=given.get("control_location") or "front-end",
    )
    call.session.add(row)
    return {"encryption": _of_type(row)}


def delete(call: Call, type_id: str, encryption_id: str, **_: str) -> None:  # noqa: ARG001
    call.require_admin()
    row = call.session.get(TypeEncryption, find_type(call, type_id).id)
    if row is None:
        raise not_found(f"Volume type encryption for type {type_id} could not be found.")
    call.session.delete(row)


def show_of_volume(call: Call, volume_id: str, **_: str) -> Json:
    row = call.session.get(VolumeKey, volumes.find(call, volume_id).id)
    if row is None:
        return {}
    return {
        "encryption_key_id": row.secret_id,
        "provider": row.provider,
        "cipher": row.cipher,
        "key_size": row.key_size,
        "control_location": "front-end",
    }


def _of_type(row: TypeEncryption) -> Json:
    return {
        "volume_type_id": row.volume_type_id,
        "encryption_id": row.volume_type_id,
        "provider": row.provider,
        "cipher": row.cipher,
        "key_size": row.key_size,
        "control_location": row.control_location,
    }
