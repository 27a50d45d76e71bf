"""Chooses a host's hardware for guests: ``[compute] cpu_dedicated_set``, ``cpu_shared_set``, ``[pci] device_spec``."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
from collections.abc import Iterable
from typing import Any

from causeway.hardware import cpus
from causeway.model.numa import NUMACell, NUMATopology
from causeway.model.pci import NO_PHYSICAL_NETWORK, PciDevice, PciDeviceType

_OF_DEVICE = ("vendor_id", "product_id", "address", "devname")
# Keys that describe no property of the device itself.
_OTHER = ("resource_class", "traits", "managed", "live_migratable", "one_time_use")
# Tags that are true or false.
_SWITCHES = ("trusted", "remote_managed")
_PARTS_OF_ADDRESS = ("domain", "bus", "slot", "function")
_PARTS = re.compile(r"([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")


def for_guests(cells: list[NUMACell], *, dedicated: str | None, shared: str | None) -> NUMATopology:
    """Divides the CPUs of the host's cells into shared and dedicated ones. Raises ValueError if the options don't fit the host.

    If only ``dedicated`` is given, no CPU is shared. If neither is given, all are.
    """
    pinned, others = cpus.parse(dedicated or ""), cpus.parse(shared or "")
    there = {cpu for cell in cells for cpu in cell.cpuset}
    if pinned & others:
        raise ValueError(f"[compute] cpu_dedicated_set and cpu_shared_set both name CPU {cpus.text(pinned & others)}")
    for name, named in (("cpu_dedicated_set", pinned), ("cpu_shared_set", others)):
        if named - there:
            raise ValueError(f"[compute] {name} names CPU {cpus.text(named - there)}, which the host does not have")
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
    """Parses ``[pci] device_spec``. Raises ValueError for a value that does not describe devices."""
    specs: list[dict[str, Any]] = []
    for text in configured:
        try:
            parsed = json.loads(text)
        except ValueError as wrong:
            raise ValueError(f"[pci] device_spec: {text} is not JSON: {wrong}") from wrong
        for spec in parsed if isinstance(parsed, list) else [parsed]:
            if not isinstance(spec, dict) or not _is_description(spec):
                raise ValueError(f"[pci] device_spec: {text} is not a description of devices")
            specs.append(spec)
    return specs


def _is_description(spec: dict[str, Any]) -> bool:
    address = spec.get("address", "*")
    if isinstance(address, dict):
        # The keys are parts of the address, the values regular expressions.
        if not set(address) <= set(_PARTS_OF_ADDRESS) or not all(isinstance(part, str) for part in address.values()):
            return False
        try:
            for part in address.values():
                re.compile(part)
        except re.error:
            return False
    elif not isinstance(address, str):
        return False
    named = "devname" in spec
    if named and (not isinstance(spec["devname"], str) or "address" in spec):
        return False
    return all(str(spec.get(name, "false")).lower() in ("true", "false") for name in _SWITCHES)


def devices_for_guests(devices: list[PciDevice], specs: list[dict[str, Any]]) -> list[PciDevice]:
    """Returns the devices that match a specification, with the tags of the first one that they match."""
    found = []
    for device in devices:
        spec = next((spec for spec in specs if _matches(device, spec)), None)
        if spec is not None:
            tags = {key: _tag(key, value) for key, value in spec.items() if key not in (*_OF_DEVICE, *_OTHER)}
            found.append(dataclasses.replace(device, extra_info={**device.extra_info, **tags}))
    return found


def _tag(key: str, value: object) -> str:
    if key == "physical_network" and value is None:
        return NO_PHYSICAL_NETWORK
    return str(value).lower() if key in _SWITCHES else str(value)


def _matches(device: PciDevice, spec: dict[str, Any]) -> bool:
    for key, value in (("vendor_id", device.vendor_id), ("product_id", device.product_id)):
        if str(spec.get(key, "*")).lower().removeprefix("0x") not in ("*", value):
            return False
    if "devname" in spec:
        # It names the device of a network interface, and its virtual functions.
        return spec["devname"] in (device.extra_info.get("ifname"), device.extra_info.get("parent_ifname"))
    address = spec.get("address", "*")
    if isinstance(address, dict):
        return _matches_parts(device.address, address)
    address = address.lower()
    if address == "*":
        return True
    # The full address of a physical function also matches its virtual functions.
    is_child = device.dev_type in (PciDeviceType.SRIOV_VF, PciDeviceType.VDPA) and device.parent_addr == address
    # As 0000:81:00.0, with * for any part. Without a domain it matches all domains.
    return is_child or any(fnmatch.fnmatchcase(device.address, pattern) for pattern in (address, f"*:{address}"))


def _matches_parts(address: str, patterns: dict[str, str]) -> bool:
    match = _PARTS.fullmatch(address)
    if match is None:
        return False
    parts = dict(zip(_PARTS_OF_ADDRESS, match.groups(), strict=True))
    return all(re.fullmatch(pattern, parts[name]) for name, pattern in patterns.items())
