"""What of a host's hardware is for guests: ``[compute] cpu_dedicated_set``, ``cpu_shared_set``, ``[pci] device_spec``."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
from collections.abc import Iterable
from typing import Any

from causeway.hardware import cpus
from causeway.model.numa import NUMACell, NUMATopology
from causeway.model.pci import PciDevice

_OF_DEVICE = ("vendor_id", "product_id", "address")
# Keys that describe no property of the device itself.
_OTHER = ("devname", "resource_class", "traits", "managed", "live_migratable", "one_time_use")


def for_guests(cells: list[NUMACell], *, dedicated: str | None, shared: str | None) -> NUMATopology:
    """The host's cells with their CPUs divided. Raises ValueError if the options don't fit the host.

    With a dedicated set alone no CPU is shared, with neither all are.
    """
    pinned, others = cpus.parse(dedicated or ""), cpus.parse(shared or "")
    there = {cpu for cell in cells for cpu in cell.cpuset}
    if pinned & others:
        raise ValueError(f"[compute] cpu_dedicated_set and cpu_shared_set both name CPU {cpus.text(pinned & others)}")
    for name, named in (("cpu_dedicated_set", pinned), ("cpu_shared_set", others)):
        if named - there:
            raise ValueError(f"[compute] {name} names CPU {cpus.text(named - there)}, which the host has not")
    if not pinned and not others:
        others = there
    return NUMATopology(
        [
            dataclasses.replace(
                cell,
                cpuset=sorted(others.intersection(cell.cpuset)),
                pcpuset=sorted(pinned.intersection(cell.cpuset)),
            )
            for cell in cells
        ]
    )


def device_specs(configured: Iterable[str]) -> list[dict[str, Any]]:
    """[pci] device_spec; raises ValueError for an option that is none."""
    specs: list[dict[str, Any]] = []
    for text in configured:
        try:
            parsed = json.loads(text)
        except ValueError as wrong:
            raise ValueError(f"[pci] device_spec: {text} is not JSON: {wrong}") from wrong
        for spec in parsed if isinstance(parsed, list) else [parsed]:
            if not isinstance(spec, dict) or not isinstance(spec.get("address", ""), str):
                raise ValueError(f"[pci] device_spec: {text} is not a description of devices")
            specs.append(spec)
    return specs


def devices_for_guests(devices: list[PciDevice], specs: list[dict[str, Any]]) -> list[PciDevice]:
    """The devices that a specification names, with the specification's further properties. The first one counts."""
    found = []
    for device in devices:
        spec = next((spec for spec in specs if _matches(device, spec)), None)
        if spec is not None:
            tags = {key: str(value) for key, value in spec.items() if key not in (*_OF_DEVICE, *_OTHER)}
            found.append(dataclasses.replace(device, extra_info={**device.extra_info, **tags}))
    return found


def _matches(device: PciDevice, spec: dict[str, Any]) -> bool:
    for key, value in (("vendor_id", device.vendor_id), ("product_id", device.product_id)):
        if str(spec.get(key, "*")).lower() not in ("*", value):
            return False
    # 0000:81:00.0, with * for any part; without a domain any.
    address = str(spec.get("address", "*")).lower()
    if address == "*":
        return True
    return any(fnmatch.fnmatchcase(device.address, pattern) for pattern in (address, f"*:{address}"))
