"""The libvirt XML of guests and devices. All functions are pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from causeway.errors import GuestFailed
from causeway.hardware import cpus
from causeway.hardware.firmware import Tpm
from causeway.hardware.guest_devices import GuestDevices
from causeway.hardware.port_plugs import Plug, bridge_of_hybrid, plug_of
from causeway.model.network import Vif
from causeway.model.numa import InstanceNUMATopology
from causeway.model.pci import PciDevice
from causeway.virt.libvirt import numa_xml, port_devices, vhost_user
from causeway.virt.libvirt.guest_xml import guest_device_xml, smbios
from causeway.virt.libvirt.guest_xml.machine import is_q35
from causeway.virt.libvirt.guest_xml.processor import Processor
from causeway.virt.libvirt.guest_xml.rbd_source import RbdSource
from causeway.virt.libvirt.guest_xml.uefi import Loader

# MiB of translated code that QEMU caches for a guest without KVM. Its own default is up to a gigabyte.
_TCG_CACHE_MIB = 64
AGENT_CHANNEL = "org.qemu.guest_agent.0"
# The most queues of a tap device in Linux.
_MOST_QUEUES = 256
#: what block storage may limit of a disk ("front-end" specs of its quality of service)
LIMITS = (
    *(f"{kind}_{unit}_sec" for unit in ("bytes", "iops") for kind in ("total", "read", "write")),
    *(f"{kind}_{unit}_sec_max" for unit in ("bytes", "iops") for kind in ("total", "read", "write")),
    "size_iops_sec",
)
_BUS_OF_PREFIX = {"vd": "virtio", "sd": "scsi", "hd": "ide"}


@dataclass
class GuestDisk:
    """A disk of a guest. ``target``: its device name without /dev/. ``serial``: the id of the volume, if it is one."""

    target: str
    source: Path | RbdSource
    disk_format: str
    is_block: bool = False
    serial: str | None = None
    is_root: bool = False
    cache: str = "none"
    read_only: bool = False
    # Other guests may use it too.
    shareable: bool = False
    bus: str | None = None
    # disk, cdrom or floppy
    device: str = "disk"
    # Names of `LIMITS` -> bytes or requests a second.
    limits: dict[str, int] = field(default_factory=dict)
    # The uuid of libvirt's secret with the passphrase, if it is encrypted with LUKS.
    secret: str | None = None

    @property
    def path(self) -> Path:
        """Its file or device. Raises `GuestFailed` if it is neither."""
        if isinstance(self.source, RbdSource):
            raise GuestFailed(f"Disk {self.target} is no file or device of this host, but an image in Ceph.")
        return self.source


@dataclass
class Uefi:
    """``nvram``: the file of the guest's variables; libvirt makes it from the loader's template if it does not exist."""

    loader: Loader
    nvram: Path


@dataclass
class GuestHardware:
    """What a guest is made of. ``virt_type``: kvm or qemu. Memory in MiB."""

    uuid: str
    name: str
    title: str
    virt_type: str
    vcpus: int
    memory_mb: int
    console_log: Path
    machine: str = "pc"
    # The serial number that its firmware shows; None: none.
    serial: str | None = None
    processor: Processor = field(default_factory=Processor)
    # None: BIOS
    uefi: Uefi | None = None
    tpm: Tpm | None = None
    # The uuid of libvirt's secret with the passphrase of the TPM's state, if it is encrypted.
    tpm_secret: str | None = None
    devices: GuestDevices = field(default_factory=GuestDevices)
    config_drive: Path | None = None
    disks: list[GuestDisk] = field(default_factory=list)
    vifs: list[Vif] = field(default_factory=list)
    numa_topology: InstanceNUMATopology | None = None
    # The CPUs on which a guest without a NUMA topology may run; empty: all.
    shared_cpus: list[int] = field(default_factory=list)
    # Without the devices that are ports.
    pci_devices: list[PciDevice] = field(default_factory=list)
    # Whether its image says that it has an agent (qemu-ga).
    has_agent: bool = False
    # The address at which its screen listens; None: it has no screen.
    vnc_listen: str | None = None
    # Address and port of its serial console; None: the console only writes to the log.
    serial_listen: tuple[str, int] | None = None


def domain_xml(guest: GuestHardware) -> str:
    """The XML of a guest's definition."""
    domain = ET.Element("domain", type=guest.virt_type)
    _text(domain, "name", guest.name)
    _text(domain, "uuid", guest.uuid)
    if guest.title:
        # libvirt accepts no line breaks in a title.
        _text(domain, "title", " ".join(guest.title.split()))
    _text(domain, "memory", guest.memory_mb, unit="MiB")
    confined = guest.shared_cpus if guest.numa_topology is None else []
    _text(domain, "vcpu", guest.vcpus, **({"cpuset": cpus.text(confined)} if confined else {}))
    if guest.numa_topology is not None:
        numa_xml.add_tuning(domain, guest.numa_topology)
    if guest.devices.locked_memory:
        backing = domain.find("memoryBacking")
        ET.SubElement(ET.SubElement(domain, "memoryBacking") if backing is None else backing, "locked")
    boot = ET.SubElement(domain, "os")
    _text(boot, "type", "hvm", arch="x86_64", machine=guest.machine)
    if guest.uefi is not None:
        _firmware(boot, guest.uefi)
    if guest.devices.boot_menu:
        ET.SubElement(boot, "bootmenu", enable="yes")
    smbios.add(domain, guest.uuid, guest.serial)
    _processor(domain, guest)
    ET.SubElement(domain, "clock", offset="utc")
    _text(domain, "on_poweroff", "destroy")
    _text(domain, "on_reboot", "restart")
    _text(domain, "on_crash", "destroy")
    devices = ET.SubElement(domain, "devices")
    for disk in guest.disks:
        devices.append(_disk(disk))
    if any(_bus(disk) == "scsi" for disk in guest.disks) or _bus_of_config_drive(guest) == "scsi":
        ET.SubElement(devices, "controller", type="scsi", model=guest.devices.scsi_model or "virtio-scsi")
    if guest.config_drive is not None:
        devices.append(_config_drive(guest, guest.config_drive))
    for vif in guest.vifs:
        vhost_user.require_shared_memory(vif, domain)
        devices.append(_interface(vif, guest.devices.vif_model, guest.devices.queues(guest.vcpus)))
    for device in guest.pci_devices:
        devices.append(numa_xml.hostdev(device))
    for kind in ("serial", "console"):
        port = _serial(kind, guest)
        ET.SubElement(port, "target", {"port": "0"} if kind == "serial" else {"type": "serial", "port": "0"})
        devices.append(port)
    if guest.vnc_listen is not None:
        graphics = ET.SubElement(devices, "graphics", type="vnc", autoport="yes", listen=guest.vnc_listen)
        ET.SubElement(graphics, "listen", type="address", address=guest.vnc_listen)
    guest_device_xml.add_video(devices, guest.devices, has_screen=guest.vnc_listen is not None)
    if guest.has_agent:
        # libvirt chooses where its socket is.
        channel = ET.SubElement(devices, "channel", type="unix")
        ET.SubElement(channel, "target", type="virtio", name=AGENT_CHANNEL)
    if guest.tpm is not None:
        # Its state stays when the definition is deleted: it belongs to the disks.
        tpm = ET.SubElement(devices, "tpm", model=guest.tpm.model)
        backend = ET.SubElement(tpm, "backend", type="emulator", version=guest.tpm.version, persistent_state="yes")
        if guest.tpm_secret is not None:
            ET.SubElement(backend, "encryption", secret=guest.tpm_secret)
    guest_device_xml.add_others(devices, guest.devices)
    ET.SubElement(devices, "memballoon", model="virtio")
    return ET.tostring(domain, encoding="unicode")


def disk_xml(disk: GuestDisk) -> str:
    return ET.tostring(_disk(disk), encoding="unicode")


def destination_xml(disk: GuestDisk, *, part: int | None) -> str:
    """The XML of a disk as the destination of a block copy of another disk.

    ``part``: the copy uses only so many bytes at the beginning of the destination; None: all of it.
    """
    element = _disk(disk)
    for child in list(element):
        if child.tag not in ("driver", "source"):
            element.remove(child)
    source = element.find("source")
    if part is not None and source is not None:
        slices = ET.SubElement(source, "slices")
        ET.SubElement(slices, "slice", type="storage", offset="0", size=str(part))
    return ET.tostring(element, encoding="unicode")


def interface_xml(vif: Vif, model: str | None = None, queues: int = 1) -> str:
    return ET.tostring(_interface(vif, model, queues), encoding="unicode")


def device_of_serial(xml: str, serial: str) -> str | None:
    """The XML of a guest's disk with this serial; None: it has none."""
    for disk in ET.fromstring(xml).iterfind("devices/disk"):
        if disk.findtext("serial") == serial:
            return ET.tostring(disk, encoding="unicode")
    return None


def device_in_folder(xml: str, folder: str) -> str | None:
    """The XML of a guest's disk that is a file in a folder of this name; None: it has none."""
    for disk in ET.fromstring(xml).iterfind("devices/disk"):
        source = disk.find("source")
        if source is not None and Path(source.get("file", "")).parent.name == folder:
            return ET.tostring(disk, encoding="unicode")
    return None


def card_model(xml: str) -> str | None:
    """The model of the guest's network cards, for a card that is added; None: it has no card."""
    model = ET.fromstring(xml).find("devices/interface/model")
    return None if model is None else model.get("type")


def target_of_file(xml: str, path: Path) -> str | None:
    """The device name of a guest's disk that is this file; None: it has no such disk."""
    for disk in ET.fromstring(xml).iterfind("devices/disk"):
        source, target = disk.find("source"), disk.find("target")
        if source is not None and target is not None and source.get("file") == str(path):
            return target.get("dev")
    return None


def agent_listens(xml: str) -> bool:
    """Whether an agent listens in a running guest."""
    target = ET.fromstring(xml).find(f"devices/channel/target[@name='{AGENT_CHANNEL}']")
    return target is not None and target.get("state") == "connected"


def _processor(domain: ET.Element, guest: GuestHardware) -> None:
    features = ET.SubElement(domain, "features")
    ET.SubElement(features, "acpi")
    ET.SubElement(features, "apic")
    if guest.uefi is not None and guest.uefi.loader.needs_smm:
        ET.SubElement(features, "smm", state="on")
    if guest.virt_type != "kvm":
        _text(ET.SubElement(features, "tcg"), "tb-cache", _TCG_CACHE_MIB, unit="MiB")
    cpu = guest.processor.add_to(domain, guest.virt_type)
    ET.SubElement(cpu, "topology", sockets=str(guest.vcpus), cores="1", threads="1")
    guest.processor.add_flags(cpu)
    if guest.numa_topology is not None:
        numa_xml.add_cells(cpu, guest.numa_topology)


def _firmware(boot: ET.Element, uefi: Uefi) -> None:
    secure = {"secure": "yes"} if uefi.loader.needs_smm else {}
    _text(boot, "loader", uefi.loader.executable, readonly="yes", type="pflash", **secure)
    _text(boot, "nvram", uefi.nvram, template=str(uefi.loader.template))


def _bus_of_config_drive(guest: GuestHardware) -> str | None:
    """SCSI if the image wants it, for guests without a driver for the controller that their machine has anyway; else that one."""
    if guest.config_drive is None:
        return None
    if guest.devices.cdrom_bus == "scsi" and guest.devices.scsi_model in (None, "virtio-scsi"):
        return "scsi"
    return "sata" if is_q35(guest.machine) else "ide"


def _config_drive(guest: GuestHardware, path: Path) -> ET.Element:
    """A CD drive, so that the names of the disks in the guest are those the user was shown."""
    cd, bus = ET.Element("disk", type="file", device="cdrom"), _bus_of_config_drive(guest)
    ET.SubElement(cd, "driver", name="qemu", type="raw")
    ET.SubElement(cd, "source", file=str(path))
    ET.SubElement(cd, "target", {"dev": "hda" if bus == "ide" else "sdz", "bus": str(bus)})
    ET.SubElement(cd, "readonly")
    if bus == "scsi":
        # Else its place would follow from its name, on a controller that the guest does not have.
        ET.SubElement(cd, "address", type="drive", controller="0", bus="0", target="1", unit="0")
    return cd


def _bus(disk: GuestDisk) -> str:
    return disk.bus or _BUS_OF_PREFIX.get(disk.target[:2], "virtio")


def _disk(disk: GuestDisk) -> ET.Element:
    network = disk.source if isinstance(disk.source, RbdSource) else None
    kind = "network" if network is not None else "block" if disk.is_block else "file"
    element = ET.Element("disk", type=kind, device=disk.device)
    driver = ET.SubElement(element, "driver", name="qemu", type=disk.disk_format, cache=disk.cache)
    if disk.device == "disk":
        driver.set("discard", "unmap")
    if network is not None:
        element.append(network.element())
    else:
        ET.SubElement(element, "source", {"dev" if disk.is_block else "file": str(disk.source)})
    if disk.secret is not None:
        encryption = ET.SubElement(element, "encryption", format="luks")
        ET.SubElement(encryption, "secret", type="passphrase", uuid=disk.secret)
    ET.SubElement(element, "target", dev=disk.target, bus=_bus(disk))
    if disk.limits:
        tune = ET.SubElement(element, "iotune")
        for name in LIMITS:
            if name in disk.limits:
                _text(tune, name, disk.limits[name])
    if disk.read_only:
        ET.SubElement(element, "readonly")
    if disk.shareable:
        ET.SubElement(element, "shareable")
    if disk.serial:
        _text(element, "serial", disk.serial)
    if disk.is_root:
        ET.SubElement(element, "boot", order="1")
    return element


def _interface(vif: Vif, model: str | None, queues: int) -> ET.Element:
    if port_devices.is_device(vif):
        return port_devices.element(vif)
    plug = plug_of(vif.vif_type, vif.details)
    if plug is Plug.SOCKET:
        return vhost_user.interface(vif, min(queues, _MOST_QUEUES))
    if plug in (Plug.TAP, Plug.SWITCH):
        element = ET.Element("interface", type="ethernet")
    elif plug in (Plug.BRIDGE, Plug.HYBRID):
        element = ET.Element("interface", type="bridge")
        ET.SubElement(element, "source", bridge=_bridge_of(vif, plug))
    else:
        raise GuestFailed(f"Port {vif.id} has the binding type '{vif.vif_type}', which this hypervisor can't plug.")
    ET.SubElement(element, "mac", address=vif.address)
    # "managed": whether libvirt makes the tap device.
    ET.SubElement(element, "target", {"dev": vif.devname} | ({"managed": "no"} if plug is Plug.SWITCH else {}))
    ET.SubElement(element, "model", type=model or "virtio")
    # A tap device that an unknown program connects has one queue.
    if queues > 1 and plug is not Plug.TAP:
        ET.SubElement(element, "driver", queues=str(min(queues, _MOST_QUEUES)))
    ET.SubElement(element, "mtu", size=str(vif.mtu))
    return element


def _serial(kind: str, guest: GuestHardware) -> ET.Element:
    """A serial port. What the guest writes to it goes to the log, even if nobody is connected."""
    if guest.serial_listen is None:
        element = ET.Element(kind, type="file")
        ET.SubElement(element, "source", path=str(guest.console_log), append="on")
        return element
    address, port = guest.serial_listen
    element = ET.Element(kind, type="tcp")
    ET.SubElement(element, "source", mode="bind", host=address, service=str(port))
    ET.SubElement(element, "protocol", type="raw")
    ET.SubElement(element, "log", file=str(guest.console_log), append="on")
    return element


def _bridge_of(vif: Vif, plug: Plug) -> str:
    if plug is Plug.HYBRID:
        return bridge_of_hybrid(vif.id)
    return str(vif.details.get("bridge_name") or f"brq{vif.network_id[:11]}")


def _text(parent: ET.Element, tag: str, value: object, **attributes: str) -> None:
    ET.SubElement(parent, tag, attributes).text = str(value)
