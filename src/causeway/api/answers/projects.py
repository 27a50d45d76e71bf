"""What belongs to users and projects: key pairs, server groups, quotas, limits, and what was used."""

from __future__ import annotations

from causeway.api.answers.parts import (
    COUNT,
    INTEGER,
    MICROS,
    NEXT,
    NUMBER,
    TEXT,
    UUID,
    Part,
    either,
    enum,
    many,
    mapping,
    null,
    record,
    shown_as,
    since,
    until,
)

# Key pairs
_KEY = {"name": TEXT, "public_key": TEXT, "fingerprint": TEXT, "type": since(2, enum("ssh", "x509"))}
KEYS = shown_as("keypairs", many(record({"keypair": record(_KEY)})), {"keypairs_links": since(35, NEXT)})
KEY = shown_as(
    "keypair",
    record(
        _KEY
        | {
            "id": INTEGER,
            "user_id": TEXT,
            "created_at": MICROS,
            "updated_at": null(MICROS),
            "deleted": enum(False),
            "deleted_at": null(MICROS),
        }
    ),
)
# Until 2.91 a pair may be made, whose private key is shown this once.
NEW_KEY = shown_as("keypair", record(_KEY | {"user_id": TEXT}, {"private_key": until(91, TEXT)}))

# Server groups
_POLICY = enum("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
_GROUP = record(
    {
        "id": UUID,
        "name": TEXT,
        "members": many(UUID),
        "policies": until(63, many(_POLICY, least=1, most=1)),
        "metadata": until(63, record({})),
        "policy": since(64, _POLICY),
        "rules": since(64, record({}, {"max_server_per_host": {"type": "integer", "minimum": 1}})),
        "project_id": since(13, TEXT),
        "user_id": since(13, TEXT),
    }
)
GROUPS = shown_as("server_groups", many(_GROUP))
GROUP = shown_as("server_group", _GROUP)

# Quotas. -1: no limit
_LIMIT = {"type": "integer", "minimum": -1}
_CORE = ("instances", "cores", "ram", "metadata_items", "key_pairs")
_INJECTED = ("injected_files", "injected_file_content_bytes", "injected_file_path_bytes")
_OF_GROUPS = ("server_groups", "server_group_members")
_NETWORK = ("fixed_ips", "floating_ips", "security_groups", "security_group_rules")


def _set(part: Part) -> dict[str, Part]:
    return (
        dict.fromkeys(_CORE + _OF_GROUPS, part)
        | dict.fromkeys(_INJECTED, until(56, part))
        | dict.fromkeys(_NETWORK, until(35, part))
    )


_ID = {"id": TEXT}
_CLASS = (
    dict.fromkeys(_CORE, _LIMIT)
    | dict.fromkeys(_INJECTED, until(56, _LIMIT))
    | dict.fromkeys(_NETWORK, until(49, _LIMIT))
    | dict.fromkeys(_OF_GROUPS, since(50, _LIMIT))
)
QUOTA_SET = shown_as("quota_set", record(_set(_LIMIT) | _ID))
QUOTA_SET_DETAIL = shown_as(
    # If nothing is limited, nothing is counted: all numbers are -1.
    "quota_set",
    record(_set(record({"limit": _LIMIT, "in_use": _LIMIT, "reserved": _LIMIT})) | _ID),
)
CHANGED_QUOTA_SET = shown_as("quota_set", record(_set(_LIMIT)))
QUOTA_CLASS = shown_as("quota_class_set", record(_CLASS | _ID))
CHANGED_QUOTA_CLASS = shown_as("quota_class_set", record(_CLASS))

_ABSOLUTE = (
    dict.fromkeys(
        (
            "maxTotalInstances", "maxTotalCores", "maxTotalRAMSize", "maxTotalKeypairs", "maxServerMeta", "maxServerGroups",
            "maxServerGroupMembers",
        ),
        _LIMIT,
    )
    | dict.fromkeys(("totalInstancesUsed", "totalCoresUsed", "totalRAMUsed", "totalServerGroupsUsed"), COUNT)
    | dict.fromkeys(("maxPersonality", "maxPersonalitySize"), until(56, _LIMIT))
    | {"maxImageMeta": until(38, _LIMIT)}
    | dict.fromkeys(("maxTotalFloatingIps", "maxSecurityGroups", "maxSecurityGroupRules"), until(35, _LIMIT))
    | dict.fromkeys(("totalFloatingIpsUsed", "totalSecurityGroupsUsed"), until(35, COUNT))
)  # fmt: skip
LIMITS = shown_as("limits", record({"rate": many(record({}), most=0), "absolute": record(_ABSOLUTE)}))

# Usage. Amounts are multiplied by hours.
_SERVER_USAGE = record(
    {
        "instance_id": UUID,
        "name": TEXT,
        "tenant_id": TEXT,
        "hours": NUMBER,
        "flavor": TEXT,
        "vcpus": COUNT,
        "memory_mb": COUNT,
        "local_gb": COUNT,
        "started_at": MICROS,
        "ended_at": null(MICROS),
        "uptime": INTEGER,
        "state": TEXT,
    }
)
_TOTALS = {
    "tenant_id": TEXT,
    "start": MICROS,
    "stop": MICROS,
    "total_hours": NUMBER,
    "total_vcpus_usage": NUMBER,
    "total_memory_mb_usage": NUMBER,
    "total_local_gb_usage": NUMBER,
}
_WITH_SERVERS = {"server_usages": many(_SERVER_USAGE)}
USAGES = shown_as("tenant_usages", many(record(_TOTALS, _WITH_SERVERS)), {"tenant_usages_links": since(40, NEXT)})
# Empty for a project that used nothing.
USAGE = shown_as(
    "tenant_usage", either(record({}), record(_TOTALS | _WITH_SERVERS)), {"tenant_usage_links": since(40, NEXT)}
)
_LOG = record(
    {
        "period_beginning": TEXT,
        "period_ending": TEXT,
        "num_hosts": COUNT,
        "num_hosts_done": COUNT,
        "num_hosts_running": COUNT,
        "num_hosts_not_run": COUNT,
        "hosts_not_run": many(TEXT),
        "total_instances": COUNT,
        "total_errors": COUNT,
        "overall_status": TEXT,
        "log": mapping(record({"state": TEXT, "instances": COUNT, "errors": COUNT, "message": TEXT})),
    }
)
AUDIT_LOGS = shown_as("instance_usage_audit_logs", _LOG)
AUDIT_LOG = shown_as("instance_usage_audit_log", _LOG)
