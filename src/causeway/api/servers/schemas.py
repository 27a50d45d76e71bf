"""What may be sent to servers, except for create. Source: Compute API reference; one schema per range of versions."""

from __future__ import annotations

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common
from causeway.api.servers.filters import IGNORED_SORT_KEYS, INTERNAL_FILTERS, SORT_KEYS


def fields(known: dict[str, JsonSchema], required: tuple[str, ...] = ()) -> JsonSchema:
    """An object with these fields and no others."""
    schema: JsonSchema = {"type": "object", "properties": known, "additionalProperties": False}
    return schema | {"required": list(required)} if required else schema


# --- lists

_REGEX: JsonSchema = {"type": "string", "format": "regex"}
_PATTERNS = (
    "name", "display_name", "description", "display_description", "hostname", "ip", "ip6", "access_ip_v4", "access_ip_v6",
    "kernel_id", "ramdisk_id", "key_name", "power_state", "node", "flavor", "reservation_id", "availability_zone",
    "locked_by", "root_device_name", "config_drive", "auto_disk_config", "progress", "created_at", "launched_at",
    "terminated_at",
)  # fmt: skip
_LIST: dict[str, JsonSchema] = {
    name: common.many(common.ANY_STRING)
    for name in (
        "user_id", "project_id", "tenant_id", "launch_index", "image_ref", "image", "task_state", "vm_state", "host", "uuid",
        "deleted", "soft_deleted", "status", "all_tenants", *INTERNAL_FILTERS,
    )
} | {name: common.many(_REGEX) for name in _PATTERNS} | {
    "changes-since": common.many(common.TIME),
    "limit": common.many(common.NUMBER),
    "marker": common.many(common.ANY_STRING),
    "sort_dir": common.many({"type": "string", "enum": ["asc", "desc"]}),
}  # fmt: skip
_KEYS = sorted(set(SORT_KEYS) - {"locked"})
_IGNORED = sorted(IGNORED_SORT_KEYS)


def _sort(*keys: str) -> dict[str, JsonSchema]:
    return {"sort_key": common.many({"type": "string", "enum": [*_KEYS, "locked", *keys]})}


_TAGS = {name: common.many(_REGEX) for name in ("tags", "tags-any", "not-tags", "not-tags-any")}
_BEFORE = {"changes-before": common.many(common.TIME)}
_LOCKED = {"locked": common.many(common.ANY_STRING)}

LIST: VersionedSchemas = [
    (1, 25, common.query(_LIST | _sort(*_IGNORED))),
    (26, 65, common.query(_LIST | _sort(*_IGNORED) | _TAGS)),
    (66, 72, common.query(_LIST | _sort(*_IGNORED) | _TAGS | _BEFORE)),
    (73, 74, common.query(_LIST | _sort(*_IGNORED) | _TAGS | _BEFORE | _LOCKED)),
    (75, None, common.query(_LIST | _sort() | _TAGS | _BEFORE | _LOCKED, strict=True)),
]

# --- update

ADDRESSES: dict[str, JsonSchema] = {
    "accessIPv4": {"type": "string", "format": "ipv4"},
    "accessIPv6": {"type": "string", "format": "ipv6"},
}
DISK_CONFIG: JsonSchema = {"type": "string", "enum": ["AUTO", "MANUAL"]}
_UPDATE: dict[str, JsonSchema] = {
    "name": common.NAME,
    "OS-DCF:diskConfig": DISK_CONFIG,
    **ADDRESSES,
}
HOST_NAME: JsonSchema = {
    "type": "string",
    "minLength": 2,
    "maxLength": 63,
    "pattern": r"^[a-zA-Z0-9]+[a-zA-Z0-9-]*[a-zA-Z0-9]+$",
}
FQDN: JsonSchema = common.HOSTNAME
# Whether something of this name exists is checked later.
NAME_OR_NONE: JsonSchema = {"type": ["string", "null"], "minLength": 1, "maxLength": 255}
_UPDATE_19 = _UPDATE | {"description": common.DESCRIPTION}


def _update(known: dict[str, JsonSchema]) -> JsonSchema:
    return common.body("server", fields(known))


UPDATE: VersionedSchemas = [
    (1, 18, _update(_UPDATE)),
    (19, 89, _update(_UPDATE_19)),
    (90, 93, _update(_UPDATE_19 | {"hostname": HOST_NAME})),
    (94, 103, _update(_UPDATE_19 | {"hostname": FQDN})),
    (
        104,
        None,
        _update(_UPDATE_19 | {"hostname": FQDN, "pinned_availability_zone": NAME_OR_NONE}),
    ),
]

# --- actions


def action(name: str, value: JsonSchema) -> JsonSchema:
    return common.body(name, value)


# Nova accepts anything where it expects null.
def bare(name: str) -> VersionedSchemas:
    """An action that takes nothing."""
    return [(1, None, action(name, {}))]


HOST_OR_NONE: JsonSchema = FQDN | {"type": ["string", "null"]}
FLAVOR_REF: JsonSchema = {"type": ["string", "integer"], "minLength": 1}
# It is not stored, so it may be as long as a body.
PASSWORD: JsonSchema = {"type": "string"}
CHANGE_PASSWORD: VersionedSchemas = [
    (1, None, action("changePassword", fields({"adminPass": PASSWORD}, ("adminPass",))))
]
RESIZE: VersionedSchemas = [
    (
        1,
        None,
        action(
            "resize",
            fields(
                {
                    "flavorRef": FLAVOR_REF,
                    "OS-DCF:diskConfig": DISK_CONFIG,
                },
                ("flavorRef",),
            ),
        ),
    )
]
MIGRATE: VersionedSchemas = [
    (1, 55, action("migrate", {})),
    (
        56,
        None,
        action(
            "migrate",
            common.properties([], host=HOST_OR_NONE) | {"type": ["object", "null"]},
        ),
    ),
]
REBOOT: VersionedSchemas = [
    (
        1,
        None,
        action(
            "reboot",
            common.properties(["type"], type={"enum": ["HARD", "Hard", "hard", "SOFT", "Soft", "soft"]}),
        ),
    )
]
RESET_STATE: VersionedSchemas = [
    (
        1,
        None,
        action("os-resetState", common.properties(["state"], state={"type": "string", "enum": ["active", "error"]})),
    )
]
LOCK: VersionedSchemas = [
    (1, 72, action("lock", {})),
    (
        73,
        None,
        action(
            "lock",
            common.properties([], locked_reason={"type": "string", "minLength": 1, "maxLength": 255})
            | {"type": ["object", "null"]},
        ),
    ),
]
CONSOLE: VersionedSchemas = [
    (
        1,
        None,
        action(
            "os-getConsoleOutput",
            common.properties(
                [],
                length={
                    "type": ["integer", "string", "null"],
                    "pattern": "^-?[0-9]+$",
                    "minimum": -1,
                    "maxLength": 255,
                },
            ),
        ),
    )
]
# Only the network service decides which names are valid.
_GROUP_NAME: JsonSchema = common.properties(["name"], name={"type": "string", "minLength": 1})
ADD_GROUP: VersionedSchemas = [(1, None, action("addSecurityGroup", _GROUP_NAME))]
REMOVE_GROUP: VersionedSchemas = [(1, None, action("removeSecurityGroup", _GROUP_NAME))]

# --- metadata and tags

METADATA: VersionedSchemas = [(1, None, common.body("metadata", common.METADATA))]
META: VersionedSchemas = [(1, None, common.body("meta", common.METADATA | {"minProperties": 1, "maxProperties": 1}))]
TAG: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 60, "pattern": "^[^,/]*$"}
TAGS: VersionedSchemas = [
    (26, None, common.body("tags", {"type": "array", "items": TAG, "maxItems": common.MAX_TAGS})),
]

NO_BODY: VersionedSchemas = [(1, None, common.NOTHING)]

# --- volumes and interfaces

_ATTACH: dict[str, JsonSchema] = {
    "volumeId": common.UUID,
    "device": {
        "type": ["string", "null"],
        "maxLength": 255,
        "pattern": "(^/dev/x{0,1}[a-z]{0,1}d{0,1})([a-z]+)[0-9]*$",
    },
}
DEVICE_TAG: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 60, "pattern": "^[^,/]*$"}


def _attach(more: dict[str, JsonSchema]) -> JsonSchema:
    return common.body("volumeAttachment", fields(_ATTACH | more, ("volumeId",)))


ATTACH_VOLUME: VersionedSchemas = [
    (1, 48, _attach({})),
    (49, 78, _attach({"tag": DEVICE_TAG})),
    (79, None, _attach({"tag": DEVICE_TAG, "delete_on_termination": common.BOOLEAN})),
]
_CHANGE: dict[str, JsonSchema] = {"volumeId": common.UUID}
_CHANGE_85 = _CHANGE | {
    "device": _ATTACH["device"],
    "tag": DEVICE_TAG,
    "delete_on_termination": common.BOOLEAN,
    "serverId": common.UUID,
    "id": common.UUID,
}
UPDATE_VOLUME: VersionedSchemas = [
    (1, 84, common.body("volumeAttachment", fields(_CHANGE, ("volumeId",)))),
    (85, None, common.body("volumeAttachment", fields(_CHANGE_85, ("volumeId",)))),
]
_PAGED = {"limit": common.many(common.NUMBER), "offset": common.many(common.NUMBER)}
LIST_VOLUMES: VersionedSchemas = [(1, 74, common.query(_PAGED)), (75, None, common.query(_PAGED, strict=True))]

_FIXED_IPS: JsonSchema = {
    "type": "array",
    "minItems": 1,
    "maxItems": 1,
    "items": common.properties(["ip_address"], ip_address={"type": "string", "format": "ip"}),
}
_INTERFACE: dict[str, JsonSchema] = {"net_id": common.UUID, "port_id": common.UUID, "fixed_ips": _FIXED_IPS}
ATTACH_INTERFACE: VersionedSchemas = [
    (1, 48, fields({"interfaceAttachment": fields(_INTERFACE)})),
    (49, None, fields({"interfaceAttachment": fields(_INTERFACE | {"tag": DEVICE_TAG})})),
]

# --- instance actions

_ACTIONS = {
    "limit": common.once(common.NUMBER),
    "marker": common.once(common.MARKER),
    "changes-since": common.once(common.TIME),
}
LIST_ACTIONS: VersionedSchemas = [
    (1, 57, common.query({})),
    (58, 65, common.query(_ACTIONS, strict=True)),
    (66, None, common.query(_ACTIONS | {"changes-before": common.once(common.TIME)}, strict=True)),
]
