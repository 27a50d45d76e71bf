"""Which values of a definition from another host are believed: a schema. All functions are pure.

Each element here is made anew, with the listed attributes only, and each attribute must match its pattern. Nothing else of a
foreign element gets into a definition. Raises `GuestRefused` for a value that does not match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree as ET

from causeway.errors import GuestRefused
from causeway.model import guest_names

# Bytes. One with hundreds of devices has a tenth of that.
_LONGEST = 1 << 20
_NUMBER = r"[0-9]{1,9}"
_SMALL = r"[0-9]{1,3}"
_HEX = r"0x[0-9a-fA-F]{1,8}"
ON_OFF = r"on|off"
_YES_NO = r"yes|no"
# A name that a user may give to a device, as libvirt defines it. libvirt makes all others by itself.
_ALIAS = re.compile(r"ua-[A-Za-z0-9_-]{1,120}")
_WORD = r"[A-Za-z0-9_.-]{1,64}"

Schema = Mapping[str, str]

_ADDRESSES: dict[str, Schema] = {
    "pci": {"domain": _HEX, "bus": _HEX, "slot": _HEX, "function": _HEX, "multifunction": ON_OFF},
    "drive": {"controller": _SMALL, "bus": _SMALL, "target": _SMALL, "unit": r"[0-9]{1,5}"},
    "virtio-serial": {"controller": _SMALL, "bus": _SMALL, "port": _SMALL},
    "usb": {"bus": _SMALL, "port": r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,6}"},
    "isa": {"iobase": _HEX, "irq": _HEX},
}
_CONTROLLERS: dict[str, str] = {
    "ide": r"piix3|piix4|ich6",
    "fdc": r"",
    "sata": r"",
    "virtio-serial": r"virtio(?:-non)?(?:-transitional)?",
    "ccid": r"",
    "scsi": r"auto|buslogic|lsilogic|lsisas1068|lsisas1078|virtio-scsi|vmpvscsi|am53c974|dc390|"
    r"virtio(?:-non)?-transitional",
    "usb": r"none|piix3-uhci|piix4-uhci|ehci|ich9-ehci1|ich9-uhci[1-6]|vt82c686b-uhci|pci-ohci|nec-xhci|qemu-xhci",
    "pci": r"pci-root|pcie-root|pci-bridge|dmi-to-pci-bridge|pcie-to-pci-bridge|pcie-root-port|"
    r"pcie-switch-upstream-port|pcie-switch-downstream-port|pci-expander-bus|pcie-expander-bus",
}
_PCI_MODELS = (
    r"pci-bridge|i82801b11-bridge|pcie-pci-bridge|ioh3420|pcie-root-port|x3130-upstream|xio3130-downstream|pxb|pxb-pcie"
)
_CARDS = r"virtio(?:-non)?(?:-transitional)?|e1000|e1000e|igb|rtl8139|ne2k_pci|pcnet|vmxnet3|i82551|i82557b|i82559er"
_VIDEO = {
    "type": r"vga|cirrus|qxl|virtio|bochs|vmvga|none",
    "ram": _NUMBER,
    "vram": _NUMBER,
    "vram64": _NUMBER,
    "vgamem": _NUMBER,
    "heads": r"[1-9]|1[0-6]",
    "primary": _YES_NO,
}
_INPUT = {"type": r"mouse|tablet|keyboard", "bus": r"ps2|usb|virtio"}
_WATCHDOG = {"model": r"i6300esb|ib700|itco|diag288", "action": r"reset|shutdown|poweroff|pause|none|inject-nmi"}
# What the guest's driver was offered when it started.
BALLOON = {"autodeflate": ON_OFF, "freePageReporting": ON_OFF}
_CPU = {
    "mode": r"custom|host-model|host-passthrough|maximum",
    "match": r"exact|minimum|strict",
    "check": r"none|partial|full",
    "migratable": ON_OFF,
}
_CPU_PARTS: dict[str, Schema] = {
    "cache": {"level": r"[1-3]", "mode": r"emulate|passthrough|disable"},
    "maxphysaddr": {"mode": r"emulate|passthrough", "bits": r"[1-9][0-9]", "limit": r"[1-9][0-9]"},
    "feature": {"policy": r"force|require|optional|disable|forbid", "name": _WORD},
}
# What no guest is given: a value of a file, a program or a device could follow in an option of QEMU.
_MACHINE = re.compile(r"pc|q35|pc-(?:i440fx|q35)-[a-z0-9.]{1,32}")
_MOST_FEATURES = 1000


def parse(xml: str) -> ET.Element:
    """The XML of another host. It can be long or deep; entities could make it longer."""
    if len(xml) > _LONGEST or "<!DOCTYPE" in xml or "<!ENTITY" in xml:
        raise GuestRefused(
            "Another host describes a guest in a way that is not accepted.", details="too long, or with a document type"
        )
    try:
        return ET.fromstring(xml)
    except (ET.ParseError, ValueError, RecursionError) as failure:
        raise GuestRefused("Another host describes a guest with broken XML.", details=str(failure)) from failure


def refused(what: str, value: object) -> GuestRefused:
    return GuestRefused(
        f"Another host describes the guest with {what} that is not accepted here.", details=repr(value)[:200]
    )


def matched(value: str, pattern: str, what: str) -> str:
    if re.fullmatch(pattern, value, re.ASCII) is None:
        raise refused(what, value)
    return value


def attributes(found: ET.Element, schema: Schema) -> dict[str, str]:
    """The attributes of the schema that an element has. Others are left out: what they mean here, this host decides."""
    return {
        name: matched(found.get(name, ""), pattern, f"a {found.tag} whose {name}")
        for name, pattern in schema.items()
        if name in found.attrib
    }


def part(found: ET.Element, tag: str, schema: Schema) -> ET.Element | None:
    """The child ``tag``, made anew."""
    child = found.find(tag)
    return None if child is None else ET.Element(tag, attributes(child, schema))


def places(device: ET.Element) -> list[ET.Element]:
    """The addresses and the alias of a device, made anew, and the number by which firmware and guest call it."""
    made = []
    for address in device.findall("address"):
        kind = address.get("type", "")
        if kind not in _ADDRESSES:
            raise refused(f"a {device.tag} at an address", kind)
        made.append(ET.Element("address", {"type": kind} | attributes(address, _ADDRESSES[kind])))
    alias = device.find("alias")
    if alias is not None and (name := alias.get("name", "")).startswith("ua-"):
        if _ALIAS.fullmatch(name) is None:
            raise refused(f"a {device.tag} whose alias", name)
        made.append(ET.Element("alias", name=name))
    acpi = part(device, "acpi", {"index": r"[0-9]{1,5}"})
    return [*made, *([] if acpi is None else [acpi])]


def controller(found: ET.Element) -> ET.Element:
    kind = found.get("type", "")
    if kind not in _CONTROLLERS:
        raise refused("a controller", kind)
    ports = {"ports": _SMALL, "vectors": _SMALL} if kind in ("virtio-serial", "usb") else {}
    # Some kinds have no models: then an empty one is none either.
    models = {"model": _CONTROLLERS[kind]} if _CONTROLLERS[kind] else {}
    schema = {"type": kind, "index": _SMALL} | models | ports
    made = ET.Element("controller", attributes(found, schema))
    model = part(found, "model", {"name": _PCI_MODELS}) if kind == "pci" else None
    target = part(
        found,
        "target",
        {"chassis": _SMALL, "chassisNr": _SMALL, "port": _HEX, "busNr": _SMALL, "index": _SMALL, "hotplug": ON_OFF},
    )
    # One USB controller of several that are one device.
    master = part(found, "master", {"startport": _SMALL})
    driver = part(found, "driver", {"queues": _SMALL})
    made.extend([each for each in (model, target, master, driver) if each is not None])
    made.extend(places(found))
    return made


def video(found: ET.Element) -> ET.Element:
    made = ET.Element("video")
    made.extend([each for each in [part(found, "model", _VIDEO)] if each is not None])
    made.extend(places(found))
    return made


def small_device(found: ET.Element) -> ET.Element:
    """A keyboard, mouse, tablet or watchdog."""
    made = ET.Element(found.tag, attributes(found, _INPUT if found.tag == "input" else _WATCHDOG))
    if found.tag == "input" and set(made.attrib) != {"type", "bus"}:
        raise refused("an input device", ET.tostring(found, encoding="unicode"))
    made.extend(places(found))
    return made


def cpu(found: ET.Element) -> ET.Element:
    """Model and features of a CPU. How many there are, and where, is not taken from elsewhere."""
    made = ET.Element("cpu", attributes(found, _CPU))
    model, vendor = found.find("model"), found.find("vendor")
    if model is not None:
        copy = ET.SubElement(
            made, "model", attributes(model, {"fallback": r"allow|forbid", "vendor_id": r"[A-Za-z0-9 ]{12}"})
        )
        if model.text:
            copy.text = matched(model.text.strip(), _WORD, "a CPU model")
    if vendor is not None:
        ET.SubElement(made, "vendor").text = matched((vendor.text or "").strip(), r"[A-Za-z0-9]{1,16}", "a CPU vendor")
    if len(found) > _MOST_FEATURES:
        raise refused("a CPU", f"{len(found)} features")
    for tag, schema in _CPU_PARTS.items():
        made.extend([ET.Element(tag, attributes(each, schema)) for each in found.findall(tag)])
    return made


def machine(name: str) -> str:
    if _MACHINE.fullmatch(name) is None:
        raise refused("a machine type", name)
    return name


def guest_name(name: str, uuid: str) -> str:
    if not guest_names.is_accepted(name, uuid):
        raise refused("a name", name)
    return name


def card(found: ET.Element) -> dict[str, str]:
    """The model of a network card; empty: none is said."""
    model = part(found, "model", {"type": _CARDS})
    return {} if model is None else dict(model.attrib)


def card_driver(found: ET.Element, most_queues: int) -> dict[str, str]:
    """What serves a network card: QEMU itself, which every host has, or what the host takes; and by how many queues."""
    made = {"name": "qemu"} if found.get("name") == "qemu" else {}
    if "queues" in found.attrib:
        made["queues"] = str(number(found.get("queues", ""), 1, most_queues, "queues"))
    return made


def number(text: str, least: int, most: int, what: str) -> int:
    if re.fullmatch(_NUMBER, text, re.ASCII) is None or not least <= int(text) <= most:
        raise refused(what, text)
    return int(text)
