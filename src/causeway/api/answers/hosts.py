"""Hosts as administrators see them: aggregates, zones, services, hypervisors, and hosts (until 2.42)."""

from __future__ import annotations

from causeway.api.answers.parts import (
    BOOLEAN,
    COUNT,
    INTEGER,
    IP,
    MICROS,
    NEXT,
    NULL,
    TEXT,
    UUID,
    Part,
    changing,
    either,
    enum,
    many,
    mapping,
    null,
    record,
    shown_as,
    since,
    until,
    versions,
)

_UUIDS_FROM = 53
_ID = changing((1, _UUIDS_FROM - 1, INTEGER), (_UUIDS_FROM, None, UUID))
_STATUS, _STATE = enum("enabled", "disabled"), enum("up", "down")

# Aggregates
_NEW_AGGREGATE = {
    "id": INTEGER,
    "name": TEXT,
    "availability_zone": null(TEXT),
    "created_at": MICROS,
    "updated_at": null(MICROS),
    "deleted": enum(False),
    "deleted_at": NULL,
    "uuid": since(41, UUID),
}
_AGGREGATE = record(_NEW_AGGREGATE | {"hosts": many(TEXT), "metadata": mapping(TEXT)})
AGGREGATES = shown_as("aggregates", many(_AGGREGATE))
AGGREGATE = shown_as("aggregate", _AGGREGATE)
NEW_AGGREGATE = shown_as("aggregate", record(_NEW_AGGREGATE))

# Zones. A zone whose services are all disabled shows no hosts.
_ZONE_STATE = record({"available": BOOLEAN})
_ZONE_HOSTS = mapping(mapping(record({"available": BOOLEAN, "active": BOOLEAN, "updated_at": null(MICROS)})))


def _zones(hosts: Part) -> Part:
    return many(record({"zoneName": TEXT, "zoneState": _ZONE_STATE, "hosts": hosts}))


ZONES = shown_as("availabilityZoneInfo", _zones(NULL))
ZONES_DETAIL = shown_as("availabilityZoneInfo", _zones(null(_ZONE_HOSTS)))

# Services
_NAMED = {"host": TEXT, "binary": TEXT}
_SERVICE = record(
    _NAMED
    | {
        "id": _ID,
        "zone": TEXT,
        "status": _STATUS,
        "state": _STATE,
        "updated_at": null(MICROS),
        "disabled_reason": null(TEXT),
        "forced_down": since(11, BOOLEAN),
    }
)
SERVICES = shown_as("services", many(either(_SERVICE, since(69, record(_NAMED | {"status": enum("UNKNOWN")})))))
SERVICE = shown_as("service", _SERVICE)
SERVICE_ENABLED = shown_as("service", record(_NAMED | {"status": enum("enabled")}))
SERVICE_DISABLED = shown_as("service", record(_NAMED | {"status": enum("disabled")}))
SERVICE_DISABLED_WITH_REASON = shown_as(
    "service", record(_NAMED | {"status": enum("disabled"), "disabled_reason": TEXT})
)
SERVICE_FORCED_DOWN = shown_as("service", record(_NAMED | {"forced_down": BOOLEAN}))

# Hypervisors. Servers are shown if they are asked for; until 2.74 only if there are any.
_BRIEF = {"id": _ID, "hypervisor_hostname": TEXT, "state": _STATE, "status": _STATUS}
_SERVERS = {"servers": many(record({"uuid": UUID, "name": TEXT}))}
_SIZES: dict[str, Part] = {
    **dict.fromkeys(("vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "local_gb", "local_gb_used"), COUNT),
    **dict.fromkeys(("running_vms", "current_workload"), COUNT),
    # Negative if the host is overcommitted.
    **dict.fromkeys(("free_ram_mb", "free_disk_gb"), INTEGER),
    "disk_available_least": null(INTEGER),
}
_WHOLE = (
    _BRIEF
    | {
        "hypervisor_type": TEXT,
        "hypervisor_version": INTEGER,
        "host_ip": null(IP),
        "service": record({"id": _ID, "host": TEXT, "disabled_reason": null(TEXT)}),
        "cpu_info": changing((1, 27, TEXT), (28, 87, {"type": "object"})),
        "uptime": since(88, null(TEXT)),
    }
    | {name: until(87, part) for name, part in _SIZES.items()}
)
_ASKED_FOR = {"servers": since(_UUIDS_FROM, _SERVERS["servers"])}
_LINKS = {"hypervisors_links": since(33, NEXT)}
HYPERVISORS = shown_as("hypervisors", many(record(_BRIEF, _ASKED_FOR)), _LINKS)
HYPERVISORS_DETAIL = shown_as("hypervisors", many(record(_WHOLE, _ASKED_FOR)), _LINKS)
HYPERVISOR = shown_as("hypervisor", record(_WHOLE, _ASKED_FOR))
UPTIME = shown_as("hypervisor", record(_BRIEF | {"uptime": TEXT}))
FOUND_HYPERVISORS = shown_as("hypervisors", many(record(_BRIEF)))
SERVERS_OF_HYPERVISORS = shown_as("hypervisors", many(record(_BRIEF, _SERVERS)))
STATISTICS = shown_as("hypervisor_statistics", record(_SIZES | {"count": COUNT}))

# Hosts
HOSTS = shown_as("hosts", many(record({"host_name": TEXT, "service": TEXT, "zone": TEXT})))
HOST = shown_as(
    "host",
    many(
        record(
            {"resource": record({"host": TEXT, "project": TEXT, "cpu": COUNT, "memory_mb": COUNT, "disk_gb": COUNT})}
        )
    ),
)
CHANGED_HOST = versions(record({"host": TEXT, "status": _STATUS}))
