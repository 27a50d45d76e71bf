"""What a host may report of itself. Schedulers, lists and audits of the whole cloud read it, and a host may be compromised.

A report with values that no host has is refused as a whole: the host counts as unreachable until it reports possible ones, and
nothing of others fails because of it. A host that lies within these bounds attracts servers or keeps them away, which only an
operator can see.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from typing import Any

from oslo_utils import uuidutils

from causeway import errors
from causeway.model.host import ComputeNode
from causeway.model.outcomes import HostReport
from causeway.model.pci import PciDevice

_INTEGER = 2**31 - 1
#: name of a node's field -> the largest value
NUMBERS = {
    "vcpus": 1_000_000,
    "vcpus_used": 1_000_000_000,
    "memory_mb": _INTEGER,
    "memory_mb_used": _INTEGER,
    "local_gb": _INTEGER,
    "local_gb_used": _INTEGER,
    "running_vms": 1_000_000,
    "hypervisor_version": _INTEGER,
}
RATIOS = {"cpu_allocation_ratio": 10_000.0, "ram_allocation_ratio": 10_000.0, "disk_allocation_ratio": 10_000.0}
#: name -> the most characters
TEXTS = {"host": 255, "hypervisor_hostname": 255, "hypervisor_type": 255, "uptime": 1024}
_MOST_OF = {"guests": 100_000, "pci_devices": 10_000, "supported_instances": 1_000}
# Characters of its JSON.
_LONGEST_FACTS = 256 * 1024


def check(report: HostReport) -> None:
    """Raises BadRequest, which names the first value that can't be."""
    problem = next(_problems(report), None)
    if problem is not None:
        raise errors.BadRequest(
            f"The report of host {report.host[:80]!r} is refused: {problem}. Look at its compute service before it gets servers."
        )


def _problems(report: HostReport) -> Iterator[str]:
    node = report.node
    if node.host != report.host:
        yield f"its node is of host {node.host[:80]!r}"
    yield from _of_node(node)
    for name, count in (
        ("guests", len(report.guests)),
        ("pci_devices", len(report.pci_devices)),
        ("supported_instances", len(node.supported_instances)),
    ):
        if count > _MOST_OF[name]:
            yield f"it has {count} {name}, and at most {_MOST_OF[name]} are taken"
    if not 0 <= report.service_version <= _INTEGER:
        yield f"service_version {report.service_version}"
    yield from (f"guest {uuid[:80]!r}" for uuid in report.guests if not uuidutils.is_uuid_like(uuid))
    for device in report.pci_devices:
        yield from _of_device(device)
    if len({device.address for device in report.pci_devices}) < len(report.pci_devices):
        yield "two of its pci_devices have one address"


def _of_node(node: ComputeNode) -> Iterator[str]:
    if not uuidutils.is_uuid_like(node.uuid):
        yield f"uuid {node.uuid[:80]!r}"
    for name, most in (NUMBERS | RATIOS).items():
        number = getattr(node, name)
        # No number compares with NaN.
        if not 0 <= number <= most:
            yield f"{name} {number}"
    for name, longest in TEXTS.items():
        text = getattr(node, name) or ""
        if len(text) > longest:
            yield f"{name} has {len(text)} characters"
    if node.host_ip is not None and not _is_address(node.host_ip):
        yield f"host_ip {node.host_ip[:80]!r}"
    for name in ("cpu_info", "capabilities"):
        yield from _of_facts(name, getattr(node, name))
    for supported in node.supported_instances[: _MOST_OF["supported_instances"]]:
        if len(supported) != 3 or any(len(each) > 64 for each in supported):
            yield f"supported_instances {str(supported)[:80]}"
    cells = node.numa_topology.cells if node.numa_topology is not None else []
    if len(cells) > 1024:
        yield f"{len(cells)} NUMA cells"


def _of_facts(name: str, facts: dict[str, Any]) -> Iterator[str]:
    try:
        size = len(json.dumps(facts, allow_nan=False))
    except (RecursionError, ValueError, TypeError) as error:
        yield f"{name}: {error}"
        return
    if size > _LONGEST_FACTS:
        yield f"{name} has {size} characters"


def _of_device(device: PciDevice) -> Iterator[str]:
    texts = (
        device.address,
        device.vendor_id,
        device.product_id,
        device.dev_type,
        *map(str, device.extra_info.values()),
    )
    if any(len(text) > 255 for text in texts) or len(device.extra_info) > 100:
        yield f"PCI device {device.address[:80]!r}"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
