"""Diagnostics of servers as the API shows them. Source: Compute API reference, "Show Server Diagnostics"."""

from __future__ import annotations

from typing import Any

from causeway.model.diagnostics import Diagnostics, NicDiagnostics
from causeway.model.instance import Instance
from causeway.store.database import utcnow

_KIB_IN_MIB = 1024
# The old form's value for what the hypervisor does not report.
_UNKNOWN = -1
_NIC = ("octets", "errors", "drop", "packets")


def standard(found: Diagnostics, instance: Instance) -> dict[str, Any]:
    """From 2.48: the same for all hypervisors."""
    since = instance.launched_at
    return {
        "state": "running",
        "driver": found.driver,
        "hypervisor": found.hypervisor,
        "hypervisor_os": found.hypervisor_os,
        "uptime": None if since is None else max(0, int((utcnow() - since).total_seconds())),
        "config_drive": bool(instance.config_drive),
        "num_cpus": len(found.cpus),
        "num_nics": len(found.nics),
        "num_disks": len(found.disks),
        "memory_details": {"maximum": found.memory_maximum, "used": found.memory_used},
        "cpu_details": [{"id": cpu.id, "time": cpu.time, "utilisation": None} for cpu in found.cpus],
        "nic_details": [_nic(nic) for nic in found.nics],
        "disk_details": [
            {
                "read_bytes": disk.read_bytes,
                "read_requests": disk.read_requests,
                "write_bytes": disk.write_bytes,
                "write_requests": disk.write_requests,
                "errors_count": None,
            }
            for disk in found.disks
        ],
    }


def _nic(nic: NicDiagnostics) -> dict[str, Any]:
    counted = {f"{way}_{what}": getattr(nic, f"{way}_{what}") for way in ("rx", "tx") for what in _NIC}
    return {"mac_address": nic.mac_address, "rx_rate": None, "tx_rate": None} | counted


def flat(found: Diagnostics) -> dict[str, Any]:
    """Before 2.48: names and values as Nova's libvirt driver has them; memory in KiB."""
    shown: dict[str, Any] = {f"cpu{cpu.id}_time": cpu.time for cpu in found.cpus}
    for disk in found.disks:
        shown |= {
            f"{disk.device}_read": disk.read_bytes,
            f"{disk.device}_read_req": disk.read_requests,
            f"{disk.device}_write": disk.write_bytes,
            f"{disk.device}_write_req": disk.write_requests,
            f"{disk.device}_errors": None,
        }
    for nic in found.nics:
        for way in ("rx", "tx"):
            shown[f"{nic.device}_{way}"] = getattr(nic, f"{way}_octets")
            for what in _NIC[1:]:
                shown[f"{nic.device}_{way}_{what}"] = getattr(nic, f"{way}_{what}")
    for name, mib in (("memory", found.memory_maximum), ("memory-actual", found.memory_used)):
        shown[name] = None if mib is None else mib * _KIB_IN_MIB
    return {name: _UNKNOWN if value is None else value for name, value in shown.items()}
