"""How security groups are shown: those of a project, and those of a server."""

from __future__ import annotations

from typing import Any

PROTOCOLS = ("tcp", "udp", "icmp")
LAST_PORT = 65535


def of_rule(rule: dict[str, Any], names: dict[str, dict[str, Any]]) -> dict[str, Any]:
    first, last = rule["port_range_min"], rule["port_range_max"]
    if rule["protocol"] in PROTOCOLS and first is None:
        first, last = (-1, -1) if rule["protocol"] == "icmp" else (1, LAST_PORT)
    source = names.get(rule["remote_group_id"] or "")
    every = "::/0" if rule["ethertype"] == "IPv6" else "0.0.0.0/0"
    return {
        "id": rule["id"],
        "parent_group_id": rule["security_group_id"],
        "ip_protocol": rule["protocol"],
        "from_port": first,
        "to_port": last,
        "group": {"name": source["name"], "tenant_id": source["project_id"]} if source else {},
        "ip_range": {} if rule["remote_group_id"] else {"cidr": rule["remote_ip_prefix"] or every},
    }


def of_group(group: dict[str, Any], names: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """``names``: id -> group, with those that the rules refer to."""
    return {
        "id": group["id"],
        "name": group["name"],
        "description": group["description"] or "",
        "tenant_id": group["project_id"],
        "rules": [
            of_rule(rule, names)
            for rule in group.get("security_group_rules", [])
            # As in Nova: no egress rules, and none that refer to a deleted group.
            if rule["direction"] == "ingress" and (rule["remote_group_id"] is None or rule["remote_group_id"] in names)
        ],
    }
