"""The definition of a guest that comes with its memory: the target's own, with what the guest has seen since it was started.

The definition that the target would make from the records (`domain_xml`) is the base. A running guest must find its devices where
they were, and its CPU as it was. So a list of values is taken from the definition that comes with the memory, each checked by
`foreign_values`:

- machine type, of the same family; the guest's name; model and features of its CPU; what its firmware says of the machine;
- what its balloon can do, and whether it has a place for a crash dump;
- the addresses and the user's aliases of its devices, the bus of a disk, the model, MTU and queues of a network card;
- what libvirt adds by itself: controllers, video card, keyboard and mouse, watchdog.

Everything else of the other definition is left out, or refused with `GuestRefused` if the guest would miss it. Paths, programs,
sockets, scripts, arguments of QEMU and devices of the host come from the target alone. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from xml.etree import ElementTree as ET

from causeway.errors import GuestRefused
from causeway.virt.libvirt.guest_xml import foreign_values as values
from causeway.virt.libvirt.guest_xml import smbios

_KVM, _QEMU = "kvm", "qemu"
# What a definition may have beside what the target's has: the guest does not see it, or the target decides it.
_LEFT_OUT = frozenset(
    {
        "name",
        "uuid",
        "title",
        "description",
        "metadata",
        "memory",
        "currentMemory",
        "vcpu",
        "vcpus",
        "iothreads",
        "iothreadids",
        "cputune",
        "numatune",
    }
    | {
        "memtune",
        "blkiotune",
        "memoryBacking",
        "resource",
        "seclabel",
        "os",
        "features",
        "cpu",
        "clock",
        "pm",
        "perf",
        "sysinfo",
    }
    | {"devices", "on_poweroff", "on_reboot", "on_crash", "on_lockfailure"}
)
_BOOT_LEFT_OUT = frozenset({"type", "loader", "nvram", "boot", "bootmenu", "firmware", "smbios"})
_DEVICES_LEFT_OUT = frozenset({"emulator", "graphics", "audio"})
# 1280: of IPv6.
_LEAST_MTU, _MOST_MTU = 1280, 65535
_MOST_QUEUES = 256
_BUSES = r"virtio|scsi|ide|sata|usb|fdc"


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


def disks_in_storage(xml: str) -> list[str]:
    """The device names of the guest's own disks that are in storage which several hosts reach. Only volumes have serials."""
    found = []
    for disk in ET.fromstring(xml).iterfind("devices/disk[@type='network']"):
        target = disk.find("target")
        if target is not None and disk.find("serial") is None and disk.find("readonly") is None:
            found.append(target.get("dev", ""))
    return found


def has_volumes(xml: str) -> bool:
    """Whether the guest has volumes: only their disks have serials."""
    return ET.fromstring(xml).find("devices/disk/serial") is not None


def for_target(source: str, target: str, *, keeps_name: bool = True) -> str:
    """The definition ``target``, for the guest of ``source``, which is not believed. ``keeps_name``: else it is the target's.

    Raises `GuestRefused` if ``source`` has what ``target`` does not have, or values that are not accepted.
    """
    foreign, made = values.parse(source), values.parse(target)
    _check_parts(foreign, made)
    if foreign.get("type") not in (_QEMU, made.get("type")):
        raise values.refused("a hypervisor", foreign.get("type"))
    made.set("type", str(foreign.get("type")))
    if keeps_name:
        _put_text(made, "name", values.guest_name(foreign.findtext("name", ""), made.findtext("uuid", "")))
    _check_size(foreign, made)
    _put_boot(foreign, made)
    smbios.put_foreign(foreign, made)
    _put_features(foreign, made)
    own = made.find("cpu")
    if own is not None:
        made[list(made).index(own)] = cpu_for_target(foreign.find("cpu"), own)
    devices, theirs = _devices(made), _devices(foreign)
    for tag, (key, put) in _MATCHED.items():
        _match(devices, theirs, tag, key, put)
    _put_balloon(devices, theirs)
    for tag in ("controller", "video", "input", "watchdog"):
        for device in devices.findall(tag):
            devices.remove(device)
        # A list: `extend` hides what a generator raises.
        devices.extend([_TAKEN[tag](each) for each in theirs.findall(tag)])
    if devices.find("video") is None:
        # libvirt adds a video card to a screen.
        for screen in devices.findall("graphics"):
            devices.remove(screen)
    return ET.tostring(made, encoding="unicode")


def name_at_target(target: str, uuid: str) -> str:
    """What the guest is called in the definition ``target``, which is not believed. Raises `GuestRefused`."""
    return values.guest_name(values.parse(target).findtext("name", ""), uuid)


def cpu_for_target(foreign: ET.Element | None, own: ET.Element) -> ET.Element:
    """The CPU of a guest: model and features as the guest has them, number and places as the target says."""
    made = ET.Element("cpu") if foreign is None else values.cpu(foreign)
    if made.get("mode", "custom") not in ("custom", own.get("mode")):
        raise values.refused("the CPU mode", made.get("mode"))
    without = {each.get("name") for each in own.findall("feature") if each.get("policy") in ("disable", "forbid")}
    for feature in made.findall("feature"):
        if feature.get("policy") in ("force", "require", "optional") and feature.get("name") in without:
            raise values.refused("a CPU feature", feature.get("name"))
    made.extend([deepcopy(each) for each in own if each.tag in ("topology", "numa")])
    return made


def cookie_for_target(cookie: str, xml: str) -> str:
    """The cookie beside a definition in a memory file: the CPU as it was started. ``xml``: the target's definition."""
    found, own = values.parse(cookie).find("cpu"), ET.fromstring(xml).find("cpu")
    made = ET.Element("cookie")
    if found is not None and own is not None:
        made.append(cpu_for_target(found, own))
    return ET.tostring(made, encoding="unicode")


def _devices(domain: ET.Element) -> ET.Element:
    devices = domain.find("devices")
    if devices is None:
        raise GuestRefused("The hypervisor describes the guest without devices.")
    return devices


def _check_parts(foreign: ET.Element, made: ET.Element) -> None:
    """Raises `GuestRefused` for a part or a kind of device that the target knows nothing of."""
    if foreign.tag != "domain":
        raise values.refused("a document", foreign.tag)
    own_devices = {each.tag for each in _devices(made)} | set(_MATCHED) | set(_TAKEN) | {"memballoon"}
    for parent, left_out, own in (
        (foreign, _LEFT_OUT, {each.tag for each in made}),
        (foreign.find("os"), _BOOT_LEFT_OUT, {each.tag for each in made.iterfind("os/*")}),
        (foreign.find("devices"), _DEVICES_LEFT_OUT, own_devices - {"hostdev"}),
    ):
        for child in [] if parent is None else parent:
            if child.tag == "hostdev":
                raise GuestRefused("A guest with devices of its host can't be moved while it runs.")
            if child.tag not in left_out and child.tag not in own:
                raise values.refused("a part", child.tag)


def _check_size(foreign: ET.Element, made: ET.Element) -> None:
    """The guest has as many processors and as much memory as the records say."""
    for tag, own, theirs in (
        ("vcpu", made.findtext("vcpu"), (foreign.findtext("vcpu") or "").strip()),
        ("memory", _kib(made), _kib(foreign)),
    ):
        if own != theirs:
            raise GuestRefused(
                f"The guest was started with another size ({tag}) than its server has.",
                details=f"{theirs!r:.100}, and not {own!r}",
            )


def _kib(domain: ET.Element) -> int:
    units = {"KiB": 1, "MiB": 1024, "GiB": 1024**2}
    memory = domain.find("memory")
    if memory is None or memory.get("unit", "KiB") not in units:
        raise values.refused("memory", None if memory is None else memory.get("unit"))
    return values.number((memory.text or "").strip(), 1, 2**40, "memory") * units[memory.get("unit", "KiB")]


def _put_text(made: ET.Element, tag: str, text: str) -> None:
    found = made.find(tag)
    if found is not None:
        found.text = text


def _put_boot(foreign: ET.Element, made: ET.Element) -> None:
    """The machine type, and nothing else: firmware and its variables are files of the target."""
    theirs, own = foreign.find("os/type"), made.find("os/type")
    if theirs is None or own is None:
        raise values.refused("a machine", None)
    machine, wanted = values.machine(theirs.get("machine", "")), own.get("machine", "")
    if theirs.get("arch", "x86_64") != own.get("arch") or _family(machine) != _family(wanted):
        raise values.refused("a machine type", f"{theirs.get('arch')} {machine}, and not {wanted}")
    own.set("machine", machine)
    has_uefi = foreign.find("os/nvram") is not None
    if has_uefi is not (made.find("os/nvram") is not None):
        raise GuestRefused(
            "The target of the migration does not know that the guest has UEFI."
            if has_uefi
            else "The guest was started without UEFI, which its server asks for."
        )


def _family(machine: str) -> str:
    return "q35" if "q35" in machine else "i440fx"


def _put_features(foreign: ET.Element, made: ET.Element) -> None:
    """A guest without KVM has a cache of translated code, also where the host's other guests have KVM. One of Nova's has a place
    for what a crash dump needs (vmcoreinfo)."""
    theirs, own = foreign.find("features"), made.find("features")
    if theirs is None or own is None:
        raise values.refused("features", None)
    known = {each.tag for each in own} | {"tcg", "vmcoreinfo"}
    for feature in theirs:
        if feature.tag not in known:
            raise values.refused("a feature", feature.tag)
    if made.get("type") == _QEMU and own.find("tcg") is None and (cache := theirs.find("tcg/tb-cache")) is not None:
        size = values.number((cache.text or "").strip(), 1, 1024**2, "a cache")
        ET.SubElement(ET.SubElement(own, "tcg"), "tb-cache", unit="KiB").text = str(size)
    if (
        own.find("vmcoreinfo") is None
        and (info := values.part(theirs, "vmcoreinfo", {"state": values.ON_OFF})) is not None
    ):
        own.append(info)


def _match(
    devices: ET.Element,
    theirs: ET.Element,
    tag: str,
    key: Callable[[ET.Element], str],
    put: Callable[[ET.Element, ET.Element], None],
) -> None:
    """Puts the values of each of their devices into the target's own device with the same key. The guest has no others."""
    own, seen = {key(each): each for each in devices.findall(tag)}, set()
    for device in theirs.findall(tag):
        name = key(device)
        if name in seen or name not in own:
            known = "knows nothing of" if name not in seen else "knows only one"
            raise GuestRefused(f"The target of the migration {known} {_NAMES.get(tag, tag)} {name[:80]} of the guest.")
        seen.add(name)
        put(own[name], device)
        for place in own[name].findall("address"):
            own[name].remove(place)
        own[name].extend(values.places(device))
    for name, device in own.items():
        if name not in seen:
            devices.remove(device)


def _target(device: ET.Element) -> str:
    target = device.find("target")
    return "" if target is None else target.get("dev") or target.get("name") or target.get("port") or ""


def _mac(port: ET.Element) -> str:
    mac = port.find("mac")
    return "" if mac is None else mac.get("address", "").lower()


def _model(device: ET.Element) -> str:
    return device.get("model", "")


def _put_disk(own: ET.Element, theirs: ET.Element) -> None:
    if theirs.get("device", "disk") != own.get("device", "disk"):
        raise values.refused("a disk", theirs.get("device"))
    if (theirs.findtext("serial") or "") != (own.findtext("serial") or ""):
        raise values.refused("a disk whose serial", theirs.findtext("serial"))
    if is_encrypted(theirs) is not is_encrypted(own):
        # The guest would read what is encrypted, and write over it what is not.
        raise values.refused("a disk whose encryption", _target(theirs))
    target, bus = own.find("target"), values.part(theirs, "target", {"bus": _BUSES})
    if target is not None and bus is not None:
        target.attrib.update(bus.attrib)
    source = own.find("source")
    if source is not None and theirs.find("source") is None:
        if own.get("device") not in ("cdrom", "floppy"):
            raise values.refused("a disk without a source", _target(theirs))
        own.remove(source)


def is_encrypted(disk: ET.Element) -> bool:
    return disk.find("encryption") is not None or disk.find("source/encryption") is not None


def _put_port(own: ET.Element, theirs: ET.Element) -> None:
    if own.get("type") == "hostdev":
        raise GuestRefused("A guest with devices of its host can't be moved while it runs.")
    model = own.find("model")
    if model is not None:
        model.attrib.update(values.card(theirs))
    # The guest learned both when it started.
    for tag in ("mtu", "driver"):
        for old in own.findall(tag):
            own.remove(old)
    if (mtu := theirs.find("mtu")) is not None:
        size = values.number(mtu.get("size", ""), _LEAST_MTU, _MOST_MTU, "an MTU")
        ET.SubElement(own, "mtu", size=str(size))
    if (driver := theirs.find("driver")) is not None:
        # libvirt refuses a card that has none of what a driver may say, where the guest's has it, and be it empty.
        ET.SubElement(own, "driver", values.card_driver(driver, _MOST_QUEUES))


def _put_nothing(_own: ET.Element, _theirs: ET.Element) -> None:
    """What the guest sees of it is in the address."""


def _put_balloon(devices: ET.Element, theirs: ET.Element) -> None:
    """libvirt adds a balloon to a guest that has none, unless the definition says that there is none."""
    own, found = devices.find("memballoon"), theirs.findall("memballoon")
    if own is None or len(found) > 1:
        raise values.refused("a balloon", len(found))
    if not found or found[0].get("model") == "none":
        own.set("model", "none")
    elif found[0].get("model") != own.get("model"):
        raise values.refused("a balloon", found[0].get("model"))
    else:
        own.attrib.update(values.attributes(found[0], values.BALLOON))
        own.extend(values.places(found[0]))


# Tag -> what names such a device of a guest, and what is put into the target's.
_MATCHED: dict[str, tuple[Callable[[ET.Element], str], Callable[[ET.Element, ET.Element], None]]] = {
    "disk": (_target, _put_disk),
    "interface": (_mac, _put_port),
    "serial": (_target, _put_nothing),
    "console": (_target, _put_nothing),
    "channel": (_target, _put_nothing),
    "tpm": (_model, _put_nothing),
    "rng": (_model, _put_nothing),
}
_NAMES = {"interface": "port", "tpm": "TPM", "rng": "random number generator"}
# Tag -> how such a device is made anew.
_TAKEN: dict[str, Callable[[ET.Element], ET.Element]] = {
    "controller": values.controller,
    "video": values.video,
    "input": values.small_device,
    "watchdog": values.small_device,
}
