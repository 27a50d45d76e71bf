"""The definition of a guest at the target of a live migration: the guest as it is, with the target's paths, bridges and CPUs.

What the guest sees, down to the addresses of its devices, must not change: it comes from the running guest's own XML. What the
guest does not see comes from the definition that the target would make (`domain_xml`). All functions are pure.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from causeway.errors import GuestFailed


def local_disks(xml: str, folder: Path) -> dict[str, Path]:
    """Device name -> file, of each disk in ``folder`` that the guest may write to."""
    found = {}
    for disk in ET.fromstring(xml).iterfind("devices/disk"):
        source, target = disk.find("source"), disk.find("target")
        if source is None or target is None or disk.find("readonly") is not None:
            continue
        path = Path(source.get("file", ""))
        if path.parent == folder:
            found[target.get("dev", "")] = path
    return found


def has_volumes(xml: str) -> bool:
    """Whether the guest has volumes: only their disks have serials."""
    return ET.fromstring(xml).find("devices/disk/serial") is not None


def for_target(source: str, target: str) -> str:
    """The guest of ``source`` with the paths, bridges and CPUs of ``target``.

    Raises `GuestFailed` if ``target`` does not have one of the guest's devices.
    """
    domain, wanted = ET.fromstring(source), ET.fromstring(target)
    devices = _devices(domain)
    if devices.find("hostdev") is not None:
        raise GuestFailed("A guest with devices of its host can't be moved while it runs.")
    # Each host has its own program that runs guests.
    for emulator in devices.findall("emulator"):
        devices.remove(emulator)
    _confine(domain, wanted)
    _put_firmware(domain, wanted)
    there = {_target_of(disk): disk for disk in wanted.iterfind("devices/disk")}
    for disk in devices.iterfind("disk"):
        if disk.find("source") is not None:
            _put_disk(disk, there.get(_target_of(disk)))
    ports = {_mac_of(port): port for port in wanted.iterfind("devices/interface")}
    for port in devices.iterfind("interface"):
        _put_port(port, ports.get(_mac_of(port)))
    # The target's libvirt chooses where the agent's socket is.
    for channel in devices.iterfind("channel[@type='unix']"):
        for place in channel.findall("source"):
            channel.remove(place)
    for kind in ("serial", "console"):
        for console in devices.iterfind(kind):
            _put_console(console, wanted.find(f"devices/{kind}"))
    _put_screen(devices, wanted.find("devices/graphics"))
    return ET.tostring(domain, encoding="unicode")


def _devices(domain: ET.Element) -> ET.Element:
    devices = domain.find("devices")
    if devices is None:
        raise GuestFailed("The hypervisor describes the guest without devices.")
    return devices


def _confine(domain: ET.Element, wanted: ET.Element) -> None:
    """Replaces which CPUs and memory cells of the host the guest may use."""
    vcpu, confined = domain.find("vcpu"), wanted.find("vcpu")
    if vcpu is not None:
        vcpu.attrib.pop("cpuset", None)
        if confined is not None and confined.get("cpuset"):
            vcpu.set("cpuset", confined.get("cpuset", ""))
    for tag in ("cputune", "numatune"):
        for old in domain.findall(tag):
            domain.remove(old)
        domain.extend(wanted.findall(tag))


def _put_firmware(domain: ET.Element, wanted: ET.Element) -> None:
    """Replaces where the host has its UEFI, and where the guest's variables are."""
    boot, there = domain.find("os"), wanted.find("os")
    if boot is None or there is None or boot.find("nvram") is None:
        return
    for tag in ("loader", "nvram"):
        old, new = boot.find(tag), there.find(tag)
        if new is None:
            raise GuestFailed("The target of the migration does not know that the guest has UEFI.")
        if old is not None:
            boot.remove(old)
        boot.append(new)


def _target_of(disk: ET.Element) -> str:
    target = disk.find("target")
    return "" if target is None else target.get("dev", "")


def _mac_of(port: ET.Element) -> str:
    mac = port.find("mac")
    return "" if mac is None else mac.get("address", "").lower()


def _put_disk(disk: ET.Element, wanted: ET.Element | None) -> None:
    if wanted is None or (place := wanted.find("source")) is None:
        raise GuestFailed(f"The target of the migration knows nothing of disk {_target_of(disk)} of the guest.")
    disk.set("type", wanted.get("type", "file"))
    # The images below the disk are the target's own: libvirt reads their names from the file there.
    for tag in ("source", "backingStore", "mirror"):
        for old in disk.findall(tag):
            disk.remove(old)
    disk.append(place)
    driver, wanted_driver = disk.find("driver"), wanted.find("driver")
    if driver is not None and wanted_driver is not None:
        driver.set("cache", wanted_driver.get("cache", "none"))


def _put_console(console: ET.Element, wanted: ET.Element | None) -> None:
    """Replaces where a serial console leads, which the guest does not see."""
    if wanted is None or console.get("type") not in ("file", "tcp"):
        return
    places = ("source", "protocol", "log")
    for old in [child for child in console if child.tag in places]:
        console.remove(old)
    console.attrib.pop("tty", None)
    console.set("type", wanted.get("type", "file"))
    console.extend(child for child in wanted if child.tag in places)


def _put_screen(devices: ET.Element, wanted: ET.Element | None) -> None:
    """Replaces the address of the screen, or removes the screen, as the target says. The guest keeps its video card."""
    screens = devices.findall("graphics[@type='vnc']")
    for screen in screens:
        devices.remove(screen)
    if screens and wanted is not None:
        devices.append(wanted)


def _put_port(port: ET.Element, wanted: ET.Element | None) -> None:
    if wanted is None:
        raise GuestFailed(f"The target of the migration knows nothing of the guest's port {_mac_of(port)}.")
    port.set("type", wanted.get("type", "bridge"))
    for tag in ("source", "virtualport", "target"):
        for old in port.findall(tag):
            port.remove(old)
        port.extend(wanted.findall(tag))
