"""What may be sent to create servers, by microversion. Source: Compute API reference, "Create Server"."""

from __future__ import annotations

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common
from causeway.api.servers.schemas import (
    ADDRESSES,
    DEVICE_TAG,
    DISK_CONFIG,
    FLAVOR_REF,
    FQDN,
    HOST_NAME,
    PASSWORD,
    TAG,
    fields,
)

MAX_USER_DATA = 65535
_COUNT: JsonSchema = common.POSITIVE_INTEGER
_BOOT_INDEX: JsonSchema = {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]+$", "maxLength": 10}
_SIZE: JsonSchema = {"type": ["integer", "string"], "pattern": "^[0-9]+$", "minimum": 1, "minLength": 1, "maxLength": 10,
                     "maximum": common.MAX_INTEGER}  # fmt: skip

_DEVICE_NAME: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9._/-]*$"}

# The older form of block_device_mapping_v2.
_LEGACY_DEVICE = fields(
    {
        "virtual_name": {"type": "string", "maxLength": 255},
        "volume_id": common.UUID,
        "snapshot_id": common.UUID,
        "volume_size": _SIZE,
        "device_name": _DEVICE_NAME,
        "delete_on_termination": common.BOOLEAN,
        "no_device": {},
        "connection_info": {"type": "string", "maxLength": 16777215},
    }
)
_DEVICE: dict[str, JsonSchema] = {
    "virtual_name": {"type": "string", "maxLength": 255},
    "volume_id": common.UUID,
    "snapshot_id": common.UUID,
    "image_id": common.UUID,
    "volume_size": _SIZE,
    "device_name": _DEVICE_NAME,
    "delete_on_termination": common.BOOLEAN,
    "no_device": {},
    "connection_info": {"type": "string", "maxLength": 16777215},
    "source_type": {"type": "string", "enum": ["volume", "image", "snapshot", "blank"]},
    "uuid": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[a-zA-Z0-9._-]*$"},
    "destination_type": {"type": "string", "enum": ["local", "volume"]},
    "guest_format": {"type": "string", "maxLength": 255},
    "device_type": {"type": "string", "maxLength": 16},
    "disk_bus": {"type": "string", "maxLength": 16},
    "boot_index": _BOOT_INDEX,
}
_VOLUME_TYPE: JsonSchema = {"type": ["string", "null"], "minLength": 0, "maxLength": 255}


def _devices(minor: int) -> JsonSchema:
    known = dict(_DEVICE)
    # Tags were lost by mistake in 2.33, and came back.
    if minor == 32 or minor >= 42:
        known["tag"] = DEVICE_TAG
    if minor >= 67:
        known["volume_type"] = _VOLUME_TYPE
    return {"type": "array", "items": fields(known)}


def _networks(minor: int) -> JsonSchema:
    known: dict[str, JsonSchema] = {
        "fixed_ip": {"type": "string", "format": "ip"},
        "port": {"oneOf": [{"type": "null"}, common.UUID]},
        "uuid": {"type": "string", "format": "uuid"} if minor >= 37 else common.ANY_STRING,
    }
    if 32 <= minor <= 36 or minor >= 42:
        known["tag"] = DEVICE_TAG
    listed: JsonSchema = {"type": "array", "items": fields(known)}
    return {"oneOf": [listed, {"type": "string", "enum": ["none", "auto"]}]} if minor >= 37 else listed


PERSONALITY: JsonSchema = {
    "type": "array",
    "items": fields(
        {"path": {"type": "string"}, "contents": {"type": "string", "format": "base64"}}, ("path", "contents")
    ),
}
CERTIFICATES: JsonSchema = {
    "type": ["array", "null"],
    "minItems": 1,
    "maxItems": 50,
    "uniqueItems": True,
    "items": {"type": "string", "minLength": 1},
}
SCHEDULER_HINTS: JsonSchema = {
    "type": "object",
    "properties": {
        "group": common.UUID,
        "different_host": {"oneOf": [common.UUID, {"type": "array", "items": common.UUID}]},
        "same_host": {"type": ["string", "array"], "items": common.UUID},
        "query": {"type": ["string", "object"]},
        "target_cell": common.NAME,
        "different_cell": {"type": ["string", "array"], "items": {"type": "string"}},
        "build_near_host_ip": {"type": "string", "format": "ip"},
        "cidr": {"type": "string", "pattern": "^/[0-9a-f.:]+$"},
    },
    "additionalProperties": True,
}  # fmt: skip


def _server(minor: int) -> JsonSchema:
    known: dict[str, JsonSchema] = {
        "name": common.NAME,
        "imageRef": {"type": "string", "anyOf": [{"format": "uuid"}, {"enum": [""]}]},
        "flavorRef": FLAVOR_REF,
        "adminPass": PASSWORD,
        "metadata": common.METADATA,
        "networks": _networks(minor),
        "OS-DCF:diskConfig": DISK_CONFIG,
        **ADDRESSES,
        "availability_zone": common.NAME,
        "block_device_mapping": {"type": "array", "items": _LEGACY_DEVICE},
        "block_device_mapping_v2": _devices(minor),
        "config_drive": common.BOOLEAN,
        "key_name": common.NAME,
        "min_count": _COUNT,
        "max_count": _COUNT,
        "return_reservation_id": common.BOOLEAN,
        "security_groups": {
            "type": "array",
            "items": fields({"name": common.NAME}),
        },
        "user_data": {"type": "string", "format": "base64", "maxLength": MAX_USER_DATA},
    }
    if minor < 57:
        known["personality"] = PERSONALITY
    if minor >= 19:
        known["description"] = common.DESCRIPTION
    if minor >= 52:
        known["tags"] = {"type": "array", "items": TAG, "maxItems": common.MAX_TAGS}
    if minor >= 63:
        known["trusted_image_certificates"] = CERTIFICATES
    if minor >= 74:
        known["host"] = common.HOSTNAME
        known["hypervisor_hostname"] = common.HOSTNAME
    if minor >= 90:
        known["hostname"] = HOST_NAME if minor < 94 else FQDN
    required = ["name", "flavorRef"] + (["networks"] if minor >= 37 else [])
    return {
        "type": "object",
        "properties": {
            "server": fields(known, tuple(required)),
            "os:scheduler_hints": SCHEDULER_HINTS,
            "OS-SCH-HNT:scheduler_hints": SCHEDULER_HINTS,
        },
        "required": ["server"],
        "additionalProperties": False,
    }


# The minor versions in which something changed.
_CHANGES = [1, 19, 32, 33, 37, 42, 52, 57, 63, 67, 74, 90, 94]

CREATE: VersionedSchemas = [
    (first, following - 1 if following else None, _server(first))
    for first, following in zip(_CHANGES, [*_CHANGES[1:], None], strict=True)
]
