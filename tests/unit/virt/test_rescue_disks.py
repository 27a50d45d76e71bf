"""How a libvirt guest has its disks while it is rescued."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from causeway.errors import NotImplementedHere
from causeway.model.rescue import RescueImage, of_image, of_record, without
from causeway.virt.libvirt.guest_xml.domain_xml import GuestDisk, GuestHardware, domain_xml, target_of_file
from causeway.virt.libvirt.guest_xml.rbd_source import CephAccess, Monitor, RbdSource
from causeway.virt.libvirt.storage import rescue

FOLDER = Path("/instances/server")
RESCUE = FOLDER / "disk.rescue"


def own() -> list[GuestDisk]:
    return [
        GuestDisk("vda", FOLDER / "disk", "qcow2", is_root=True),
        GuestDisk("vdb", Path("/dev/sdx"), "raw", is_block=True, serial="volume"),
        GuestDisk("vdc", FOLDER / "disk.eph0", "qcow2"),
    ]


def xml_with(disks: list[GuestDisk], *, config_drive: bool = False) -> str:
    drive = FOLDER / "disk.config" if config_drive else None
    return domain_xml(
        GuestHardware("uuid", "name", "", "qemu", 1, 128, FOLDER / "console.log", disks=disks, config_drive=drive)
    )


def shown(xml: str) -> list[tuple[str, str, str, str, str | None]]:
    """(device, file, target, bus, boot order) of each disk."""
    found = []
    for disk in ET.fromstring(xml).iterfind("devices/disk"):
        source, target, boot = disk.find("source"), disk.find("target"), disk.find("boot")
        assert source is not None and target is not None
        path = Path(source.get("file") or source.get("dev") or "").name
        order = None if boot is None else boot.get("order")
        found.append((disk.get("device", ""), path, target.get("dev", ""), target.get("bus", ""), order))
    return found


def arranged(disks: list[GuestDisk], machine: str = "pc", **image: str) -> list[GuestDisk]:
    return rescue.arranged(disks, RESCUE, RescueImage("image", **image), cache="none", machine=machine)


def test_the_rescue_disk_is_first_and_the_own_one_second() -> None:
    xml = xml_with(arranged(own()[:1]), config_drive=True)
    assert shown(xml) == [
        ("disk", "disk.rescue", "vda", "virtio", "1"),
        ("disk", "disk", "vdb", "virtio", None),
        ("cdrom", "disk.config", "hda", "ide", None),
    ]
    assert target_of_file(xml, RESCUE) == "vda"


def test_all_disks_stay_in_place() -> None:
    xml = xml_with(arranged(own(), device="disk", bus="virtio"))
    assert shown(xml) == [
        ("disk", "disk", "vda", "virtio", None),
        ("disk", "sdx", "vdb", "virtio", None),
        ("disk", "disk.eph0", "vdc", "virtio", None),
        ("disk", "disk.rescue", "vdd", "virtio", "1"),
    ]


def test_a_root_disk_in_ceph_stays_in_its_place_and_is_not_booted() -> None:
    image = RbdSource("volumes/volume-1", CephAccess((Monitor("10.0.0.1", "6789"),)))
    root = GuestDisk("vda", image, "raw", is_root=True, serial="volume")
    own, rescued = ET.fromstring(xml_with(arranged([root], device="disk"))).findall("devices/disk")
    assert (own.get("type"), own.find("boot")) == ("network", None)
    assert own.find("source/host") is not None and rescued.find("boot") is not None


@pytest.mark.parametrize(
    ("image", "machine", "device", "target", "bus"),
    [
        ({"device": "disk"}, "pc", "disk", "vdd", "virtio"),
        ({"bus": "scsi"}, "pc", "disk", "sda", "scsi"),
        ({"bus": "usb"}, "pc", "disk", "sda", "usb"),
        ({"device": "cdrom"}, "pc", "cdrom", "hdb", "ide"),
        ({"device": "cdrom"}, "q35", "cdrom", "sda", "sata"),
        ({"device": "cdrom", "bus": "scsi"}, "pc", "cdrom", "sda", "scsi"),
        ({"device": "floppy"}, "pc", "floppy", "fda", "fdc"),
    ],
)
def test_the_rescue_disk_is_as_the_image_wants_it(
    image: dict[str, str], machine: str, device: str, target: str, bus: str
) -> None:
    xml = xml_with(arranged(own(), machine, **image), config_drive=True)
    found = next(each for each in shown(xml) if each[1] == "disk.rescue")
    assert found == (device, "disk.rescue", target, bus, "1")
    (element,) = [each for each in ET.fromstring(xml).iterfind("devices/disk") if each.find("boot") is not None]
    assert (element.find("readonly") is not None) is (device == "cdrom")


def test_the_guests_own_disks_are_described_as_before() -> None:
    disks = own()
    arranged(disks, device="disk")
    arranged(disks[:1])
    assert disks == own()


def test_a_lun_is_refused() -> None:
    with pytest.raises(NotImplementedHere, match="block devices"):
        rescue.check(RescueImage("image", "lun"))


def test_what_the_image_wants_is_recorded() -> None:
    image = of_image("image", {"hw_rescue_device": "cdrom", "hw_disk_bus": "scsi"})
    assert (image.device, image.bus, image.is_stable, image.misfit) == ("cdrom", None, True, None)
    kept = {"other": "thing"} | image.recorded()
    assert of_record(kept) == image
    assert without(kept) == {"other": "thing"} and of_record({"other": "thing"}) is None
    assert not of_image("image", {}).is_stable
