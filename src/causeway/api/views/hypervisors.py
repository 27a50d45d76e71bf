"""How hypervisors are shown."""

from __future__ import annotations

from typing import Any

import msgspec

from causeway.api.request import ApiRequest
from causeway.model.host import ComputeNode, Service


def basic(
    request: ApiRequest, node: ComputeNode, service: Service, up: bool, servers: list[tuple[str, str]] | None
) -> dict[str, Any]:
    """``servers``: (uuid, name) of its servers; None if the request did not ask for them."""
    shown: dict[str, Any] = {
        "id": node.uuid if request.version >= (2, 53) else node.id,
        "hypervisor_hostname": node.hypervisor_hostname,
        "state": "up" if up else "down",
        "status": "disabled" if service.disabled else "enabled",
    }
    # From 2.75 on the key is there even if it has no servers.
    if servers is not None and (servers or request.version >= (2, 75)):
        shown["servers"] = [{"uuid": uuid, "name": name} for uuid, name in servers]
    return shown


def detailed(
    request: ApiRequest, node: ComputeNode, service: Service, up: bool, servers: list[tuple[str, str]] | None
) -> dict[str, Any]:
    shown = basic(request, node, service, up, servers) | {
        "hypervisor_type": node.hypervisor_type,
        "hypervisor_version": node.hypervisor_version,
        "host_ip": node.host_ip,
        "service": {
            "id": service.uuid if request.version >= (2, 53) else service.id,
            "host": node.host,
            "disabled_reason": service.disabled_reason,
        },
    }
    if request.version >= (2, 88):
        shown["uptime"] = node.uptime
        return shown
    cpu_info: Any = node.cpu_info
    shown |= sizes([node]) | {
        "disk_available_least": node.local_gb - node.local_gb_used,
        "cpu_info": cpu_info if request.version >= (2, 28) else msgspec.json.encode(cpu_info).decode(),
    }
    return shown


def sizes(nodes: list[ComputeNode]) -> dict[str, int]:
    """The sums of what nodes have, and of what is used of it. Memory in MiB, disk in GiB."""
    total = {
        name: sum(getattr(node, name) for node in nodes)
        for name in ("vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "local_gb", "local_gb_used", "running_vms")
    }
    return total | {
        "free_ram_mb": total["memory_mb"] - total["memory_mb_used"],
        "free_disk_gb": total["local_gb"] - total["local_gb_used"],
        "current_workload": 0,
    }
