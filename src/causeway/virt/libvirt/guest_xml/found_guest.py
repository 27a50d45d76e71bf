"""What the definition of a guest says that Causeway did not make. Nothing in it is believed: texts are cut, numbers checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from causeway.model.found_host import FoundDisk, FoundGuest, FoundInterface
from causeway.model.states import PowerState

_NOVA = "{http://openstack.org/xmlns/libvirt/nova/"
_LONGEST = 1024
# Of an address of a PCI device, and the digits that it has.
_PARTS = (("domain", 4), ("bus", 2), ("slot", 2), ("function", 1))
_MOST_CPUS = 4096


def read(xml: str, *, uuid: str, name: str, power_state: PowerState) -> FoundGuest:
    """Raises ValueError if it is not the definition of a guest."""
    try:
        domain = ET.fromstring(xml)
    except ET.ParseError as failure:
        raise ValueError(f"its definition is no XML: {failure}") from None
    found = FoundGuest(uuid, name, power_state)
    found.is_novas = any(child.tag.startswith(_NOVA) for child in domain.findall("metadata/*"))
    kind = domain.find("os/type")
    found.machine_type = None if kind is None else text(kind.get("machine"))
    found.vcpus = _number(domain.findtext("vcpu"))
    found.memory_mb = _number(domain.findtext("memory")) // 1024
    found.nvram = text(domain.findtext("os/nvram"))
    found.has_tpm = domain.find("devices/tpm") is not None
    found.has_encrypted_memory = domain.find("launchSecurity") is not None
    found.has_persistent_memory = any(
        each.get("model") in ("nvdimm", "virtio-pmem") for each in domain.findall("devices/memory")
    )
    found.shares = [
        text(each.get("dir") or each.get("socket") or each.get("name")) or ""
        for each in domain.findall("devices/filesystem/source")
    ]
    found.disks = [_disk(each) for each in domain.findall("devices/disk")]
    found.interfaces = [_interface(each) for each in domain.findall("devices/interface")]
    for device in domain.findall("devices/interface[@type='hostdev']"):
        found.pci_addresses += _address(device)
    for device in domain.findall("devices/hostdev"):
        _add_host_device(found, device)
    for pin in domain.findall("cputune/vcpupin"):
        found.pinned[str(_number(pin.get("vcpu")))] = sorted(cpus(pin.get("cpuset") or ""))
    return found


def _disk(device: ET.Element) -> FoundDisk:
    source, driver, target = (device.find(name) for name in ("source", "driver", "target"))
    found = FoundDisk(
        target=(text(target.get("dev")) if target is not None else None) or "",
        device=text(device.get("device")) or "disk",
        kind=text(device.get("type")) or "file",
        disk_format=None if driver is None else text(driver.get("type")),
        serial=text(device.findtext("serial")),
        is_encrypted=device.find("encryption") is not None or device.find("source/encryption") is not None,
    )
    if source is not None:
        found.protocol = text(source.get("protocol"))
        found.source = text(source.get("file") or source.get("dev") or source.get("name") or source.get("volume"))
    return found


def _interface(device: ET.Element) -> FoundInterface:
    mac, target, model = (device.find(name) for name in ("mac", "target", "model"))
    return FoundInterface(
        address=((text(mac.get("address")) if mac is not None else None) or "").lower(),
        kind=text(device.get("type")) or "",
        device=None if target is None else text(target.get("dev")),
        model=None if model is None else text(model.get("type")),
    )


def _add_host_device(found: FoundGuest, device: ET.Element) -> None:
    kind = device.get("type")
    if kind == "pci":
        found.pci_addresses += _address(device)
    elif kind == "mdev":
        address = device.find("source/address")
        found.mediated_devices.append((text(address.get("uuid")) if address is not None else None) or "unknown")
    else:
        found.other_host_devices.append(text(kind) or "unknown")


def _address(device: ET.Element) -> Iterator[str]:
    address = device.find("source/address")
    if address is not None:
        domain, bus, slot, function = (
            f"{int(address.get(name) or '0', 16):0{digits}x}" if _is_hex(address.get(name)) else "?"
            for name, digits in _PARTS
        )
        yield f"{domain}:{bus}:{slot}.{function}"


def _is_hex(value: str | None) -> bool:
    return value is None or re.fullmatch(r"(0x)?[0-9a-fA-F]{1,8}", value) is not None


def cpus(listed: str) -> set[int]:
    """The CPUs of a list such as ``0-3,^2,8``; those that are no numbers are left out."""
    found: set[int] = set()
    for part in listed.split(","):
        match = re.fullmatch(r"\s*(\^?)(\d{1,5})(?:-(\d{1,5}))?\s*", part)
        if match is None:
            continue
        first, last = int(match[2]), min(int(match[3] or match[2]), _MOST_CPUS)
        numbers = set(range(first, last + 1))
        found = found - numbers if match[1] else found | numbers
    return found


def text(value: str | None) -> str | None:
    """A text of somebody else's in one line, not too long; None for none and for an empty one."""
    return "".join(each if each.isprintable() else "?" for each in value.strip())[:_LONGEST] or None if value else None


def _number(value: str | None) -> int:
    stripped = (value or "").strip()
    return int(stripped) if re.fullmatch(r"\d{1,18}", stripped) else 0


__all__ = ["cpus", "read", "text"]
