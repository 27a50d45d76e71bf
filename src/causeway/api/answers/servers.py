"""Servers. What a version shows is in one table for lists and one server; changes answered a shorter form before 2.75."""

from __future__ import annotations

from typing import Any

from causeway.api.answers.parts import (
    BOOKMARK,
    BOOLEAN,
    COUNT,
    INTEGER,
    IP,
    LINKS,
    MAC,
    MICROS,
    NEXT,
    NULL,
    SECONDS,
    TEXT,
    UUID,
    Changing,
    changing,
    either,
    enum,
    many,
    mapping,
    null,
    record,
    shown_as,
    since,
    versions,
)

STATUS = enum(
    "ACTIVE", "BUILD", "DELETED", "ERROR", "HARD_REBOOT", "MIGRATING", "PASSWORD", "PAUSED", "REBOOT", "REBUILD", "RESCUE",
    "RESIZE", "REVERT_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "SHUTOFF", "SOFT_DELETED", "SUSPENDED", "UNKNOWN",
    "VERIFY_RESIZE",
)  # fmt: skip
_UNKNOWN = enum("UNKNOWN")
_DISK_CONFIG = enum("AUTO", "MANUAL")
_POWER_STATE = enum(0, 1, 3, 4, 6, 7)
_WHOLE = 75  # from here on changes answer the server as it is shown

_IMAGE = either(enum(""), record({"id": UUID, "links": BOOKMARK, "properties": since(98, mapping(null(TEXT)))}))
_SIZES = record(
    {"vcpus": COUNT, "ram": COUNT, "disk": COUNT, "ephemeral": COUNT, "swap": COUNT, "original_name": TEXT},
    {"extra_specs": mapping(TEXT)},
)
_FLAVOR = changing((1, 46, record({"id": TEXT, "links": BOOKMARK})), (47, None, _SIZES))
_FAULT = record({"code": INTEGER, "created": SECONDS, "message": TEXT}, {"details": TEXT})
GROUP_NAMES = many(record({"name": TEXT}))
VERSION_AND_ADDRESS = {"version": enum(4, 6), "addr": IP}
_ADDRESSES = mapping(many(record(VERSION_AND_ADDRESS)))
_ADDRESSES_WITH_PORTS = mapping(
    many(record(VERSION_AND_ADDRESS | {"OS-EXT-IPS:type": enum("fixed", "floating"), "OS-EXT-IPS-MAC:mac_addr": MAC}))
)
_VOLUMES = changing(
    (1, 2, many(record({"id": TEXT}))),
    (3, None, many(record({"id": TEXT, "delete_on_termination": BOOLEAN}))),
)
_GROUPS = many(UUID, most=1)
_TAGS = many(TEXT, most=50)

# Every answer that shows a server has these.
_COMMON: dict[str, Any] = {
    "id": UUID,
    "name": TEXT,
    "status": STATUS,
    "tenant_id": TEXT,
    "user_id": TEXT,
    "metadata": mapping(TEXT),
    "hostId": TEXT,
    "image": _IMAGE,
    "flavor": _FLAVOR,
    "created": SECONDS,
    "updated": SECONDS,
    "accessIPv4": either(enum(""), {"type": "string", "format": "ipv4"}),
    "accessIPv6": either(enum(""), {"type": "string", "format": "ipv6"}),
    "links": LINKS,
    "OS-DCF:diskConfig": _DISK_CONFIG,
    "locked": since(9, BOOLEAN),
    "description": since(19, null(TEXT)),
    "tags": since(26, _TAGS),
    "trusted_image_certificates": since(63, null(many(TEXT))),
    "locked_reason": since(73, null(TEXT)),
    "OS-EXT-SRV-ATTR:hostname": since(90, TEXT),
    "pinned_availability_zone": since(96, null(TEXT)),
    "scheduler_hints": since(100, {"type": "object"}),
}
# A server has these with some statuses.
_SOMETIMES: dict[str, Any] = {"progress": {"type": "integer", "minimum": 0, "maximum": 100}, "fault": _FAULT}
_EXTENDED: dict[str, Any] = {
    "addresses": _ADDRESSES_WITH_PORTS,
    "OS-EXT-AZ:availability_zone": TEXT,
    "config_drive": enum("", "True"),
    "key_name": null(TEXT),
    "OS-SRV-USG:launched_at": null(MICROS),
    "OS-SRV-USG:terminated_at": null(MICROS),
    "OS-EXT-STS:task_state": null(TEXT),
    "OS-EXT-STS:vm_state": TEXT,
    "OS-EXT-STS:power_state": _POWER_STATE,
    "os-extended-volumes:volumes_attached": _VOLUMES,
}
# By policy; security groups only if there are any.
_PERHAPS: dict[str, Any] = {
    "security_groups": GROUP_NAMES,
    "OS-EXT-SRV-ATTR:host": null(TEXT),
    "OS-EXT-SRV-ATTR:instance_name": TEXT,
    "OS-EXT-SRV-ATTR:hypervisor_hostname": null(TEXT),
    "OS-EXT-SRV-ATTR:reservation_id": since(3, null(TEXT)),
    "OS-EXT-SRV-ATTR:launch_index": since(3, null(COUNT)),
    "OS-EXT-SRV-ATTR:kernel_id": since(3, null(TEXT)),
    "OS-EXT-SRV-ATTR:ramdisk_id": since(3, null(TEXT)),
    "OS-EXT-SRV-ATTR:root_device_name": since(3, null(TEXT)),
    "OS-EXT-SRV-ATTR:user_data": since(3, null(TEXT)),
    "host_status": since(16, enum("UP", "DOWN", "MAINTENANCE", "UNKNOWN", "")),
}
_HOSTNAME = "OS-EXT-SRV-ATTR:hostname"


def _whole(more: dict[str, Any], perhaps: dict[str, Any] = _PERHAPS) -> Changing:
    """A server with all that is known of it. Before 2.90, only callers that may see its internals see its host name."""
    always, maybe = _COMMON | _EXTENDED | more, _SOMETIMES | perhaps
    others = {name: part for name, part in always.items() if name != _HOSTNAME}
    return changing(
        (1, 89, record(others, maybe | {_HOSTNAME: since(3, TEXT)})),
        (90, None, record(always, maybe)),
    )


# What is shown of a server whose cell does not answer (2.69).
_PARTIAL = {"id": UUID, "status": _UNKNOWN, "links": LINKS}
_PARTIAL_DETAIL = _PARTIAL | {"tenant_id": TEXT, "created": SECONDS}
_OF_DOWN_CELL = record(
    _PARTIAL_DETAIL
    | {
        "user_id": TEXT,
        "image": either(enum(""), record({"id": UUID, "links": BOOKMARK})),
        "flavor": _SIZES,
        "OS-EXT-AZ:availability_zone": TEXT,
        "OS-EXT-STS:power_state": _POWER_STATE,
        "server_groups": since(71, _GROUPS),
    }
)
_LINKS = {"servers_links": NEXT}

INDEX = shown_as(
    "servers",
    many(either(record({"id": UUID, "name": TEXT, "links": LINKS}), since(69, record(_PARTIAL)))),
    _LINKS,
)
DETAIL = shown_as("servers", many(either(_whole({}), since(69, record(_PARTIAL_DETAIL)))), _LINKS)
_SHOWN = _whole({"server_groups": since(71, _GROUPS)})
SHOW = shown_as("server", either(_SHOWN, since(69, _OF_DOWN_CELL)))
CREATE = versions(
    either(
        record({"reservation_id": TEXT}),
        record(
            {
                "server": record(
                    {"id": UUID, "links": LINKS, "OS-DCF:diskConfig": _DISK_CONFIG, "security_groups": GROUP_NAMES},
                    {"adminPass": TEXT},
                )
            }
        ),
    )
)
_SHORT = _COMMON | {"addresses": _ADDRESSES, "server_groups": since(71, _GROUPS)}
UPDATE = shown_as("server", changing((1, _WHOLE - 1, record(_SHORT, _SOMETIMES)), (_WHOLE, None, _SHOWN)))
_REBUILT = {"key_name": since(54, null(TEXT)), "user_data": since(57, null(TEXT))}
_PASSWORD = {"adminPass": TEXT}
# A rebuild answers the user data as ``user_data``.
_SEEN_REBUILT = {name: part for name, part in _PERHAPS.items() if not name.endswith(":user_data")} | _PASSWORD
_REBUILT_WHOLE = _whole({"server_groups": since(71, _GROUPS)} | _REBUILT, _SEEN_REBUILT)
REBUILD = shown_as(
    "server",
    changing((1, _WHOLE - 1, record(_SHORT | _REBUILT, _SOMETIMES | _PASSWORD)), (_WHOLE, None, _REBUILT_WHOLE)),
)
# The password, if passwords are shown at all. Evacuations answer it until 2.13, and nothing from 2.14 on.
RESCUE = versions(record({}, _PASSWORD))
EVACUATE = versions(changing((1, 13, record({}, _PASSWORD)), (14, None, NULL)))
CREATE_IMAGE = versions(changing((1, 44, NULL), (45, None, record({"image_id": UUID}))))
# With a rotation of 0 there is no image.
CREATE_BACKUP = versions(changing((1, 44, NULL), (45, None, either(NULL, record({"image_id": UUID})))))
ADDRESSES = shown_as("addresses", _ADDRESSES)
ADDRESSES_OF_NETWORK = versions(mapping(many(record(VERSION_AND_ADDRESS))) | {"minProperties": 1, "maxProperties": 1})
