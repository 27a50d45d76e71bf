"""What may be sent to rebuild, rescue, evacuate, unshelve and to make images of servers, by microversion."""

from __future__ import annotations

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common
from causeway.api.servers.creating import schemas_create
from causeway.api.servers.schemas import (
    ADDRESSES,
    DISK_CONFIG,
    FQDN,
    HOST_NAME,
    HOST_OR_NONE,
    NAME_OR_NONE,
    PASSWORD,
    action,
    fields,
)


def _rebuild(minor: int) -> JsonSchema:
    known: dict[str, JsonSchema] = {
        "imageRef": common.UUID,
        "name": common.NAME,
        "adminPass": PASSWORD,
        "metadata": common.METADATA,
        "preserve_ephemeral": common.BOOLEAN,
        "OS-DCF:diskConfig": DISK_CONFIG,
        **ADDRESSES,
    }
    if minor < 57:
        known["personality"] = schemas_create.PERSONALITY
    if minor >= 19:
        known["description"] = common.DESCRIPTION
    if minor >= 54:
        known["key_name"] = NAME_OR_NONE
    if minor >= 57:
        known["user_data"] = {
            "oneOf": [
                {"type": "string", "format": "base64", "maxLength": schemas_create.MAX_USER_DATA},
                {"type": "null"},
            ]
        }
    if minor >= 63:
        known["trusted_image_certificates"] = schemas_create.CERTIFICATES
    if minor >= 90:
        known["hostname"] = HOST_NAME if minor < 94 else FQDN
    return action("rebuild", fields(known, ("imageRef",)))


_CHANGES = [1, 19, 54, 57, 63, 90, 94]
REBUILD: VersionedSchemas = [
    (first, following - 1 if following else None, _rebuild(first))
    for first, following in zip(_CHANGES, [*_CHANGES[1:], None], strict=True)
]

_EVACUATE: dict[str, JsonSchema] = {"host": common.HOSTNAME, "adminPass": PASSWORD}
_SHARED: dict[str, JsonSchema] = {"onSharedStorage": common.BOOLEAN}
EVACUATE: VersionedSchemas = [
    (1, 13, action("evacuate", fields(_EVACUATE | _SHARED, ("onSharedStorage",)))),
    (14, 28, action("evacuate", fields(_EVACUATE))),
    (29, 67, action("evacuate", fields(_EVACUATE | {"force": common.BOOLEAN}))),
    (68, None, action("evacuate", fields(_EVACUATE))),
]

RESCUE: VersionedSchemas = [
    (
        1,
        None,
        action(
            "rescue",
            fields({"adminPass": PASSWORD, "rescue_image_ref": common.UUID}) | {"type": ["object", "null"]},
        ),
    )
]

_TO_ZONE: JsonSchema = fields({"availability_zone": common.NAME}, ("availability_zone",)) | {"type": ["object", "null"]}
# Whether the zone or the host exists is checked later.
_ANYWHERE: JsonSchema = fields({"availability_zone": {"type": ["string", "null"]}, "host": common.ANY_STRING}) | {
    "type": ["object", "null"]
}
UNSHELVE: VersionedSchemas = [
    (1, 76, action("unshelve", {})),
    (77, 90, action("unshelve", _TO_ZONE)),
    (91, None, action("unshelve", _ANYWHERE)),
]

CREATE_IMAGE: VersionedSchemas = [
    (1, None, action("createImage", fields({"name": common.NAME, "metadata": common.METADATA}, ("name",))))
]
CREATE_BACKUP: VersionedSchemas = [
    (
        1,
        None,
        action(
            "createBackup",
            fields(
                {
                    "name": common.NAME,
                    "backup_type": common.ANY_STRING,
                    "rotation": {"type": ["integer", "string"], "pattern": "^[0-9]+$", "minimum": 0, "maxLength": 255},
                    "metadata": common.METADATA,
                },
                ("name", "backup_type", "rotation"),
            ),
        ),
    )
]

_BLOCK: JsonSchema = {"enum": [*common.BOOLEAN["enum"], "auto"]}
_LIVE: dict[str, JsonSchema] = {"host": HOST_OR_NONE, "block_migration": _BLOCK}
MIGRATE_LIVE: VersionedSchemas = [
    (
        1,
        24,
        action(
            "os-migrateLive",
            fields(
                {"host": HOST_OR_NONE, "block_migration": common.BOOLEAN, "disk_over_commit": common.BOOLEAN},
                ("host", "block_migration", "disk_over_commit"),
            ),
        ),
    ),
    (25, 29, action("os-migrateLive", fields(_LIVE, ("block_migration", "host")))),
    (30, 67, action("os-migrateLive", fields(_LIVE | {"force": common.BOOLEAN}, ("block_migration", "host")))),
    (68, None, action("os-migrateLive", fields(_LIVE, ("block_migration", "host")))),
]
FORCE_COMPLETE: VersionedSchemas = [(22, None, action("force_complete", {"type": "null"}))]
