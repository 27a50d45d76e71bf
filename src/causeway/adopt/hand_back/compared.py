"""Whether Nova's records of a server say what Causeway's do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from causeway.adopt.hand_back import rows
from causeway.adopt.hand_back.nova_objects import pci_requests
from causeway.adopt.records import ImportedServer

# Nova has no place for these, or reads them anew, or they are compared below.
_NOT_COMPARED = frozenset(
    {
        "guest_name", "network_info", "security_groups", "injected_files", "admin_password", "image_meta", "system_metadata",
        "pinned_availability_zone", "locked_reason", "old_vm_state", "old_flavor", "new_flavor", "migration_context", "deleted",
        "deleted_at", "numa_topology", "pci_devices", "pci_requests",
    }
)  # fmt: skip


def essence_of(server: ImportedServer, kept: Callable[[Any], Any]) -> Any:
    """What counts: two records with the same say the same of a server. Times have whole seconds.

    ``kept``: a text as Nova's database keeps it.
    """
    return _each_text(_whole(server), kept)


def _each_text(value: Any, kept: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {_each_text(name, kept): _each_text(each, kept) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each_text(each, kept) for each in value]
    return kept(value)


def _whole(server: ImportedServer) -> dict[str, Any]:
    instance = server.instance
    whole: dict[str, Any] = {
        name: _plain(getattr(instance, name)) for name in instance.__dataclass_fields__ if name not in _NOT_COMPARED
    }
    whole["flavor"].pop("id")
    whole["keypairs"] = [(each.name, each.user_id, each.public_key) for each in instance.keypairs]
    return whole | {
        "system_metadata": rows.system_metadata(instance),
        "ports": [
            (vif.id, vif.address, vif.tag, vif.preserve_on_delete, sorted(ip.address for ip in vif.fixed_ips))
            for vif in instance.network_info
        ],
        "cpus": [
            (cell.id, cell.cpuset, cell.pcpuset, cell.memory, cell.pagesize, cell.cpu_pinning_raw, cell.cpuset_reserved)
            for cell in (instance.numa_topology.cells if instance.numa_topology is not None else [])
        ],
        "pci_requests": pci_requests(instance.pci_requests),
        "pci": sorted((each.address, each.request_id or "") for each in instance.pci_devices),
        "devices": {device.uuid: _plain(rows.device_row(device)) for device in server.block_devices},
        "zone": server.spec.availability_zone,
        "actions": sorted((each.request_id, each.action, each.message or "") for each in server.actions),
        "migrations": {each.uuid: each.status.value for each in server.migrations},
        "fault": None if server.fault is None else (server.fault.code, server.fault.message[:255]),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return rows.seconds(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return msgspec.to_builtins(value, builtin_types=(datetime,))


__all__ = ["essence_of"]
