"""What belongs to a server: metadata, tags, volumes, ports, history, consoles, diagnostics, shares, events."""

from __future__ import annotations

from causeway.api.answers.parts import (
    BOOLEAN,
    COUNT,
    INTEGER,
    IP,
    MAC,
    MICROS,
    NEXT,
    NULL,
    TEXT,
    UUID,
    changing,
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

METADATA = shown_as("metadata", mapping(TEXT))
# The item that was asked for, or the items that were sent.
META = shown_as("meta", mapping(TEXT) | {"minProperties": 1})
TAGS = shown_as("tags", many(TEXT, most=50))
PASSWORD = shown_as("password", TEXT)
# Volumes. The answer to POST changed later than those to GET, and is empty from 2.101 on.
_VOLUME = record(
    {
        "volumeId": UUID,
        "serverId": UUID,
        "id": until(88, UUID),
        "tag": since(70, null(TEXT)),
        "delete_on_termination": since(79, BOOLEAN),
        "attachment_id": since(89, null(UUID)),
        "bdm_uuid": since(89, UUID),
    },
    {"device": TEXT},
)
VOLUMES = shown_as("volumeAttachments", many(_VOLUME))
VOLUME = shown_as("volumeAttachment", _VOLUME)
_ATTACHED = record(
    {
        "id": UUID,
        "volumeId": UUID,
        "serverId": UUID,
        "device": null(TEXT),
        "tag": since(70, null(TEXT)),
        "delete_on_termination": since(79, BOOLEAN),
    }
)
# "id" is what the volume service sent, if it sent one.
ASSISTED_SNAPSHOT = shown_as("snapshot", record({"id": null(TEXT), "volumeId": TEXT}))
ATTACH_VOLUME = versions(changing((1, 100, record({"volumeAttachment": _ATTACHED})), (101, None, NULL)))

_PORT = record(
    {
        "net_id": UUID,
        "port_id": UUID,
        "mac_addr": MAC,
        "port_state": enum("ACTIVE", "BUILD", "DOWN", "ERROR", "N/A"),
        "fixed_ips": many(record({"subnet_id": UUID, "ip_address": IP})),
        "tag": since(70, null(TEXT)),
    }
)
PORTS = shown_as("interfaceAttachments", many(_PORT))
PORT = shown_as("interfaceAttachment", _PORT)

_ACTION = {
    "action": TEXT,
    "instance_uuid": UUID,
    "request_id": TEXT,
    "user_id": null(TEXT),
    "project_id": null(TEXT),
    "start_time": MICROS,
    "message": null(TEXT),
    "updated_at": since(58, null(MICROS)),
}
_EVENT = record(
    {
        "event": TEXT,
        "start_time": MICROS,
        "finish_time": null(MICROS),
        "result": null(TEXT),
        "hostId": since(62, TEXT),
    },
    # by policy
    {"traceback": null(TEXT), "host": since(62, null(TEXT)), "details": since(84, null(TEXT))},
)
ACTIONS = shown_as("instanceActions", many(record(_ACTION)), {"links": since(58, NEXT)})
ACTION = shown_as(
    "instanceAction",
    changing(
        # Until 2.50 events are for administrators.
        (1, 50, record(_ACTION, {"events": many(_EVENT)})),
        (51, None, record(_ACTION | {"events": many(_EVENT)})),
    ),
)

_PROTOCOL = changing(
    (1, 7, enum("vnc", "spice", "serial", "rdp")), (8, None, enum("vnc", "spice", "serial", "rdp", "mks"))
)
_KINDS = ("novnc", "xvpvnc", "spice-html5", "serial", "rdp-html5")
_KIND = changing(
    (1, 7, enum(*_KINDS)), (8, 98, enum(*_KINDS, "webmks")), (99, None, enum(*_KINDS, "webmks", "spice-direct"))
)
# The URL of a page, or of a WebSocket.
_CONSOLE_URL = {"type": "string", "pattern": "^(https?|wss?)://"}
REMOTE_CONSOLE = shown_as("remote_console", record({"protocol": _PROTOCOL, "type": _KIND, "url": _CONSOLE_URL}))
CONSOLE = shown_as("console", record({"type": TEXT, "url": _CONSOLE_URL}))
CONSOLE_OUTPUT = shown_as("output", TEXT)

_COUNTED = null(COUNT)
_STANDARD = record(
    {
        "state": enum("pending", "running", "paused", "shutdown", "crashed", "suspended"),
        "driver": TEXT,
        "hypervisor": null(TEXT),
        "hypervisor_os": null(TEXT),
        "uptime": _COUNTED,
        "config_drive": BOOLEAN,
        "num_cpus": COUNT,
        "num_nics": COUNT,
        "num_disks": COUNT,
        "memory_details": record({"maximum": _COUNTED, "used": _COUNTED}),
        "cpu_details": many(record({"id": _COUNTED, "time": _COUNTED, "utilisation": _COUNTED})),
        "nic_details": many(
            record(
                {"mac_address": null(MAC), "rx_rate": _COUNTED, "tx_rate": _COUNTED}
                | {
                    f"{way}_{what}": _COUNTED
                    for way in ("rx", "tx")
                    for what in ("octets", "errors", "drop", "packets")
                }
            )
        ),
        "disk_details": many(
            record(
                dict.fromkeys(
                    ("read_bytes", "read_requests", "write_bytes", "write_requests", "errors_count"), _COUNTED
                )
            )
        ),
    }
)
# Until 2.47 the names are those of the guest's own devices; -1: not known.
DIAGNOSTICS = versions(changing((1, 47, mapping(INTEGER)), (48, None, _STANDARD)))
TOPOLOGY = versions(
    record(
        {
            "nodes": many(
                record(
                    {"memory_mb": COUNT, "siblings": many(many(COUNT)), "vcpu_set": many(COUNT)},
                    # by policy
                    {"cpu_pinning": mapping(COUNT), "host_node": null(INTEGER)},
                )
            ),
            "pagesize_kb": null(COUNT),
        }
    )
)
SHARES = shown_as("shares", many(record({"share_id": UUID, "status": TEXT, "tag": TEXT})))

_AUTHORIZED = {"instance_uuid": UUID, "host": TEXT, "port": COUNT, "internal_access_path": null(TEXT)}
CONSOLE_OF_TOKEN = shown_as("console", record(_AUTHORIZED | {"tls_port": since(99, null(COUNT))}))
_CODE = enum(200, 400, 404, 422)
EXTERNAL_EVENTS = shown_as(
    "events",
    many(
        record(
            {"name": TEXT, "server_uuid": UUID, "code": _CODE, "status": enum("completed", "failed", "in-progress")},
            {"tag": TEXT},
        )
    ),
)
