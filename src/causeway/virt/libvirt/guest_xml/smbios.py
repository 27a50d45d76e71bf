"""What a guest's firmware says of its machine (SMBIOS, type 1).

Guests decide by it where they run: cloud-init looks for the metadata service only if the product is Nova's. Source: Nova,
``[libvirt] sysinfo_serial``; cloud-init, "ds-identify"; libvirt, "Domain XML format", SMBIOS System Information.
"""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from uuid import UUID
from xml.etree import ElementTree as ET

from causeway.errors import Misconfigured
from causeway.virt.libvirt.guest_xml import foreign_values as values

_MANUFACTURER, _PRODUCT, _FAMILY = "OpenStack Foundation", "OpenStack Nova", "Virtual Machine"
TEXT = r"[A-Za-z0-9 ._:/()+-]{1,128}"
ENTRIES = ("manufacturer", "product", "version", "serial", "uuid", "family")
MACHINE_ID = Path("/etc/machine-id")


class Serial(StrEnum):
    """Which serial number guests see: none, that of the host's system or of its board, the first of these, or the server's id."""

    NONE = "none"
    OS = "os"
    HARDWARE = "hardware"
    AUTO = "auto"
    UNIQUE = "unique"


def host_serial(choice: Serial, capabilities: str, machine_id: Path = MACHINE_ID) -> str | None:
    """The serial number of all guests of this host; None: it has none of its own to give.

    ``capabilities``: of the hypervisor. Raises `Misconfigured` if the host does not know the number that was chosen.
    """
    if choice in (Serial.NONE, Serial.UNIQUE):
        return None
    if choice is not Serial.HARDWARE and machine_id.exists():
        with suppress(ValueError):
            return str(UUID(machine_id.read_text().strip()))
    if choice is Serial.OS:
        raise Misconfigured(f"[libvirt] sysinfo_serial is os, but {machine_id} has no number of this host's system.")
    found = ET.fromstring(capabilities).findtext("host/uuid")
    if not found:
        raise Misconfigured(
            "[libvirt] sysinfo_serial needs the number of this host's board, which libvirt does not know."
        )
    return found


def add(domain: ET.Element, uuid: str, serial: str | None) -> None:
    """Adds what the firmware says to a definition. ``serial``: None: there is none."""
    said = {
        "manufacturer": _MANUFACTURER,
        "product": _PRODUCT,
        "version": version("causeway"),
        "serial": serial,
        "uuid": uuid,
        "family": _FAMILY,
    }
    _put(domain, {name: text for name, text in said.items() if text is not None})


def put_foreign(foreign: ET.Element, made: ET.Element) -> None:
    """Has the firmware say in ``made`` what it has said to the running guest. Raises `GuestRefused` for what is not accepted."""
    for parent, tag in ((made, "sysinfo"), (_boot(made), "smbios")):
        for own in parent.findall(tag):
            parent.remove(own)
    found, is_shown = foreign.findall("sysinfo"), foreign.find("os/smbios") is not None
    if not found:
        return
    (table, *more), system = found, found[0].find("system")
    if more or table.get("type") != "smbios" or not is_shown or system is None or len(table) > 1:
        raise values.refused("what its firmware says", [each.get("type") for each in found])
    said = {}
    for entry in system:
        name, text = entry.get("name", ""), entry.text or ""
        if name not in ENTRIES:
            raise values.refused("what its firmware says of", name)
        said[name] = values.matched(text.strip(), TEXT, f"a {name} that")
    if said.get("uuid", made.findtext("uuid")) != made.findtext("uuid"):
        raise values.refused("a firmware that names the server", said["uuid"])
    _put(made, said)


def _boot(domain: ET.Element) -> ET.Element:
    boot = domain.find("os")
    if boot is None:
        raise values.refused("a machine", None)
    return boot


def _put(domain: ET.Element, said: dict[str, str]) -> None:
    ET.SubElement(_boot(domain), "smbios", mode="sysinfo")
    system = ET.SubElement(ET.SubElement(domain, "sysinfo", type="smbios"), "system")
    for name, text in said.items():
        ET.SubElement(system, "entry", name=name).text = text
