"""What may be sent to servers, except for create. Source: Compute API reference; one schema per range of versions."""

from __future__ import annotations

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common
from causeway.api.servers.filters import SORT_KEYS


def fields(known: dict[str, JsonSchema], required: tuple[str, ...] = ()) -> JsonSchema:
    """An object with these fields and no others."""
    schema: JsonSchema = {"type": "object", "properties": known, "additionalProperties": False}
    return schema | {"required": list(required)} if required else schema


NO_QUERY: VersionedSchemas = [(1, 101, common.query({})), (102, None, common.query({}, strict=True))]

# --- lists

_REGEX: JsonSchema = {"type": "string", "format": "regex"}
_LIST: dict[str, JsonSchema] = {
    name: common.many(common.ANY_STRING)
    for name in (
        "user_id", "project_id", "tenant_id", "launch_index", "image_ref", "image", "kernel_id", "ramdisk_id", "hostname",
        "key_name", "instance_type_id", "locked_by", "display_name", "node", "host", "availability_zone", "config_drive",
        "auto_disk_config", "access_ip_v4", "access_ip_v6", "reservation_id", "created_at", "launched_at",
        "terminated_at", "power_state", "task_state", "vm_state", "progress", "uuid", "root_device_name",
        "display_description", "description", "deleted", "soft_deleted", "status", "flavor", "all_tenants", "metadata",
        "system_metadata", "block_device_mapping", "services", "security_groups", "info_cache", "pci_devices", "host_status",
    )
} | {
    "name": common.many(_REGEX),
    "ip": common.many(_REGEX),
    "ip6": common.many(_REGEX),
    "changes-since": common.many(common.TIME),
    "limit": common.many(common.NUMBER),
    "marker": common.many(common.ANY_STRING),
    "sort_dir": common.many({"type": "string", "enum": ["asc", "desc"]}),
}  # fmt: skip
_KEYS = sorted(set(SORT_KEYS) - {"locked"})
# Sorting by what is joined to a server was ignored once, and is refused now.
_SORT = {"sort_key": common.many({"type": "string", "enum": _KEYS})}
_SORT_73 = {"sort_key": common.many({"type": "string", "enum": [*_KEYS, "locked"]})}
_TAGS = {
    name: common.many({"type": "string", "minLength": 1, "maxLength": 3050})
    for name in ("tags", "tags-any", "not-tags", "not-tags-any")
}
_BEFORE = {"changes-before": common.many(common.TIME)}
_LOCKED = {"locked": common.many(common.ANY_STRING)}

LIST: VersionedSchemas = [
    (1, 25, common.query(_LIST | _SORT)),
    (26, 65, common.query(_LIST | _SORT | _TAGS)),
    (66, 72, common.query(_LIST | _SORT | _TAGS | _BEFORE)),
    (73, 74, common.query(_LIST | _SORT_73 | _TAGS | _BEFORE | _LOCKED)),
    (75, None, common.query(_LIST | _SORT_73 | _TAGS | _BEFORE | _LOCKED, strict=True)),
]

# --- update

_ADDRESS_4: JsonSchema = {"type": "string", "maxLength": 39, "anyOf": [{"format": "ipv4"}, {"enum": [""]}]}
_ADDRESS_6: JsonSchema = {"type": "string", "maxLength": 45, "anyOf": [{"format": "ipv6"}, {"enum": [""]}]}
DISK_CONFIG: JsonSchema = {"type": "string", "enum": ["AUTO", "MANUAL"]}
_UPDATE: dict[str, JsonSchema] = {
    "name": common.NAME,
    "OS-DCF:diskConfig": DISK_CONFIG,
    "accessIPv4": _ADDRESS_4,
    "accessIPv6": _ADDRESS_6,
}
HOST_NAME: JsonSchema = {
    "type": "string",
    "minLength": 2,
    "maxLength": 63,
    "pattern": r"^[a-zA-Z0-9]+[a-zA-Z0-9-]*[a-zA-Z0-9]+$",
}
FQDN: JsonSchema = {
    "type": "string",
    "minLength": 2,
    "maxLength": 255,
    "pattern": r"^[a-zA-Z0-9]+[a-zA-Z0-9-.]*[a-zA-Z0-9]+$",
}
_ZONE: JsonSchema = {"type": ["string", "null"], "minLength": 1, "maxLength": 255}
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
        _update(
            _UPDATE_19 | {"hostname": FQDN, "pinned_availability_zone": {"type": ["string", "null"], "maxLength": 255}}
        ),
    ),
]

# --- actions


def action(name: str, value: JsonSchema) -> JsonSchema:
    return common.body(name, value)


# The field accepts anything where it expects null.
def bare(name: str) -> VersionedSchemas:
    """An action that takes nothing."""
    return [(1, None, action(name, {}))]


CHANGE_PASSWORD: VersionedSchemas = [
    (1, None, action("changePassword", fields({"adminPass": {"type": "string"}}, ("adminPass",))))
]

RESIZE: VersionedSchemas = [
    (
        1,
        None,
        action(
            "resize",
            fields(
                {
                    "flavorRef": {"type": ["string", "integer"], "minLength": 1, "maxLength": 255},
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
            common.properties([], host={"type": ["string", "null"], "minLength": 1, "maxLength": 255})
            | {"type": ["object", "null"]},
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
                length={"type": ["integer", "string", "null"], "pattern": "^-?[0-9]+$", "minimum": -1, "maxLength": 10},
            ),
        ),
    )
]
_GROUP_NAME: JsonSchema = common.properties(
    ["name"], name={"type": "string", "minLength": 1, "maxLength": 255, "format": "name"}
)
ADD_GROUP: VersionedSchemas = [(1, None, action("addSecurityGroup", _GROUP_NAME))]
REMOVE_GROUP: VersionedSchemas = [(1, None, action("removeSecurityGroup", _GROUP_NAME))]

# --- metadata and tags

METADATA: VersionedSchemas = [(1, None, common.body("metadata", common.METADATA))]
META: VersionedSchemas = [(1, None, common.body("meta", common.METADATA | {"minProperties": 1, "maxProperties": 1}))]
TAG: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 60, "pattern": "^[^,/]*$"}
MAX_TAGS = 50
TAGS: VersionedSchemas = [
    (26, None, common.body("tags", {"type": "array", "items": TAG, "maxItems": MAX_TAGS})),
]

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
    (1, 48, common.body("interfaceAttachment", fields(_INTERFACE))),
    (49, None, common.body("interfaceAttachment", fields(_INTERFACE | {"tag": DEVICE_TAG}))),
]

# --- instance actions

_ACTIONS = {
    "limit": common.once(common.NUMBER),
    "marker": common.once({"type": "string", "minLength": 1, "maxLength": 255}),
    "changes-since": common.once(common.TIME),
}
LIST_ACTIONS: VersionedSchemas = [
    (1, 57, common.query({})),
    (58, 65, common.query(_ACTIONS, strict=True)),
    (66, None, common.query(_ACTIONS | {"changes-before": common.once(common.TIME)}, strict=True)),
]
