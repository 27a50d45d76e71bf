"""UEFI, TPM and small devices in a guest's XML, and on its way to another host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from causeway.errors import GuestFailed, GuestRefused, Misconfigured
from causeway.hardware.firmware import Firmware, SecureBoot, Tpm
from causeway.hardware.guest_devices import GuestDevices
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.model.machine_type import RECORDED
from causeway.model.network import Vif
from causeway.virt.libvirt.guest_xml import migratable_xml, uefi
from causeway.virt.libvirt.guest_xml.domain_xml import GuestDisk, GuestHardware, Uefi, card_model, domain_xml
from causeway.virt.libvirt.guest_xml.machine import default_machine, machine_of
from causeway.virt.libvirt.guest_xml.processor import Processor

PORT = Vif("port", "fa:16:3e:aa:bb:cc", "network", vif_type="bridge", details={"bridge_name": "br0"})


def xml(**changes: Any) -> str:
    hardware = GuestHardware("uuid", "name", "", "qemu", 2, 192, Path("/instances/console.log"))
    for name, value in changes.items():
        setattr(hardware, name, value)
    return domain_xml(hardware)


def guest(**changes: Any) -> ET.Element:
    return ET.fromstring(xml(**changes))


def attributes(domain: ET.Element, path: str) -> dict[str, str]:
    found = domain.find(path)
    assert found is not None
    return dict(found.attrib)


def described(folder: Path, name: str, *features: str, machines: list[str]) -> None:
    for kind in ("code", "vars"):
        (folder / f"{name}.{kind}").touch()
    (folder / f"{name}.json").write_text(
        json.dumps(
            {
                "interface-types": ["uefi"],
                "mapping": {
                    "device": "flash",
                    "executable": {"filename": str(folder / f"{name}.code"), "format": "raw"},
                    "nvram-template": {"filename": str(folder / f"{name}.vars"), "format": "raw"},
                },
                "targets": [{"architecture": "x86_64", "machines": machines}],
                "features": list(features),
            }
        )
    )


def test_secure_boot_has_smm_and_the_template_with_its_keys() -> None:
    loader = uefi.Loader(Path("/code.ms"), Path("/vars.ms"), is_secure=True, needs_smm=True)
    domain = guest(uefi=Uefi(loader, Path("/instances/nvram-secure")), machine="q35")
    assert attributes(domain, "os/loader") == {"readonly": "yes", "type": "pflash", "secure": "yes"}
    assert domain.findtext("os/nvram") == "/instances/nvram-secure"
    assert attributes(domain, "os/nvram") == {"template": "/vars.ms"}
    assert attributes(domain, "features/smm") == {"state": "on"}
    plain = guest(uefi=Uefi(uefi.Loader(Path("/code"), Path("/vars")), Path("/instances/nvram")))
    assert attributes(plain, "os/loader") == {"readonly": "yes", "type": "pflash"}
    assert plain.find("features/smm") is None
    assert guest().find("os/loader") is None


def test_the_state_of_a_tpm_outlives_the_definition_of_the_guest() -> None:
    domain = guest(tpm=Tpm("2.0", "tpm-crb"))
    assert attributes(domain, "devices/tpm") == {"model": "tpm-crb"}
    backend = {"type": "emulator", "version": "2.0", "persistent_state": "yes"}
    assert attributes(domain, "devices/tpm/backend") == backend


def test_small_devices_are_in_the_xml() -> None:
    wanted = GuestDevices(
        video_model="virtio",
        video_ram=16,
        vif_model="e1000",
        scsi_model="lsisas1068",
        rng_bytes=1024,
        rng_period=1000,
        watchdog_action="reset",
        tablet_bus="usb",
        boot_menu=True,
        locked_memory=True,
    )
    disk = GuestDisk("vda", Path("/disk"), "qcow2", is_root=True, bus="scsi")
    domain = guest(devices=wanted, vifs=[PORT], disks=[disk])
    assert attributes(domain, "devices/video/model") == {"type": "virtio", "vram": str(16 * 1024)}
    assert attributes(domain, "devices/interface/model") == {"type": "e1000"}
    assert attributes(domain, "devices/controller[@type='scsi']")["model"] == "lsisas1068"
    assert attributes(domain, "devices/rng/rate") == {"bytes": "1024", "period": "1000"}
    assert attributes(domain, "devices/watchdog") == {"model": "i6300esb", "action": "reset"}
    assert attributes(domain, "devices/input") == {"type": "tablet", "bus": "usb"}
    assert attributes(domain, "os/bootmenu") == {"enable": "yes"}
    assert domain.find("memoryBacking/locked") is not None
    assert card_model(xml(devices=wanted, vifs=[PORT])) == "e1000"
    assert guest(devices=GuestDevices(has_rng=False)).find("devices/rng") is None


def test_a_card_has_as_many_queues_as_the_guest_has_processors() -> None:
    queued = GuestDevices(has_queues=True)
    assert attributes(guest(devices=queued, vifs=[PORT]), "devices/interface/driver") == {"queues": "2"}
    assert guest(devices=queued, vifs=[PORT], vcpus=1).find("devices/interface/driver") is None
    assert guest(vifs=[PORT]).find("devices/interface/driver") is None


def test_a_config_drive_is_where_its_machine_has_a_controller() -> None:
    for machine, bus in (("pc", "ide"), ("q35", "sata"), ("pc-q35-7.2", "sata")):
        domain = guest(machine=machine, config_drive=Path("/disk.config"))
        assert attributes(domain, "devices/disk[@device='cdrom']/target")["bus"] == bus


@pytest.mark.parametrize(
    ("machine", "wanted", "bus"), [("q35", "scsi", "scsi"), ("pc", "scsi", "scsi"), ("pc", "fdc", "ide")]
)
def test_a_config_drive_is_on_the_bus_that_its_image_wants(machine: str, wanted: str, bus: str) -> None:
    domain = guest(machine=machine, config_drive=Path("/disk.config"), devices=GuestDevices(cdrom_bus=wanted))
    assert attributes(domain, "devices/disk[@device='cdrom']/target")["bus"] == bus
    assert (domain.find("devices/controller[@model='virtio-scsi']") is not None) is (bus == "scsi")


def test_a_config_drive_is_on_no_controller_of_another_kind() -> None:
    """Those have their drives in other places."""
    devices = GuestDevices(cdrom_bus="scsi", scsi_model="lsilogic")
    domain = guest(config_drive=Path("/disk.config"), devices=devices)
    assert attributes(domain, "devices/disk[@device='cdrom']/target")["bus"] == "ide"


def test_the_first_build_that_fits_is_chosen(tmp_path: Path) -> None:
    both = ["pc-i440fx-*", "pc-q35-*"]
    described(tmp_path, "40-enrolled", "secure-boot", "enrolled-keys", "requires-smm", machines=["pc-q35-*"])
    described(tmp_path, "50-no-keys", "secure-boot", "requires-smm", machines=["pc-q35-*"])
    described(tmp_path, "60-plain", machines=both)
    (tmp_path / "70-torn.json").write_text("{")
    found = uefi.loaders([tmp_path])
    assert [loader.executable.stem for loader in found] == ["40-enrolled", "60-plain"]
    assert uefi.choose(found, "q35", SecureBoot.REQUIRED).is_secure
    assert uefi.choose(found, "pc-q35-7.2", SecureBoot.OPTIONAL).is_secure
    assert not uefi.choose(found, "pc", SecureBoot.OPTIONAL).is_secure
    assert not uefi.choose(found, "q35", SecureBoot.DISABLED).is_secure
    with pytest.raises(GuestFailed, match="no UEFI with secure boot for the machine type pc "):
        uefi.choose(found, "pc", SecureBoot.REQUIRED)
    with pytest.raises(GuestFailed, match="no UEFI for"):
        uefi.choose([], "pc", SecureBoot.DISABLED)


def test_on_its_way_a_guest_gets_the_targets_firmware_and_its_own_variables() -> None:
    there = Uefi(uefi.Loader(Path("/there/code"), Path("/there/vars")), Path("/there/nvram"))
    here = Uefi(uefi.Loader(Path("/here/code"), Path("/here/vars")), Path("/here/nvram"))
    moved = ET.fromstring(migratable_xml.for_target(xml(uefi=here), xml(uefi=there)))
    assert (moved.findtext("os/loader"), moved.findtext("os/nvram")) == ("/there/code", "/there/nvram")
    with pytest.raises(GuestRefused, match="does not know that the guest has UEFI"):
        migratable_xml.for_target(xml(uefi=here), xml())


def test_the_recorded_machine_type_goes_before_all() -> None:
    server = Instance("uuid", "project", "user", "server", Flavor("1", "small", 1, 128, root_gb=1))
    assert machine_of(server, Firmware(), "pc") == "pc"
    assert machine_of(server, Firmware(secure_boot=SecureBoot.REQUIRED), "pc") == "q35"
    server.image_meta = ImageMeta("image", properties={"hw_machine_type": "pc-q35-6.2"})
    assert machine_of(server, Firmware(), "pc") == "pc-q35-6.2"
    server.system_metadata = {RECORDED: "pc-i440fx-7.2"}
    assert machine_of(server, Firmware(), "q35") == "pc-i440fx-7.2"


def test_the_default_machine_is_that_of_the_architecture() -> None:
    assert default_machine([]) == "pc"
    assert default_machine(["aarch64=virt", "x86_64=q35"]) == "q35"
    with pytest.raises(Misconfigured):
        default_machine(["q35"])


def test_processors_are_in_the_xml() -> None:
    assert attributes(guest(virt_type="kvm"), "cpu") == {"mode": "host-model"}
    assert attributes(guest(), "cpu") == {}
    custom = Processor("custom", ["EPYC"], ["pcid", "-mpx"], model="EPYC")
    domain = guest(virt_type="kvm", processor=custom)
    assert attributes(domain, "cpu") == {"mode": "custom", "match": "exact"}
    assert domain.findtext("cpu/model") == "EPYC"
    flags = [(each.get("name"), each.get("policy")) for each in domain.iterfind("cpu/feature")]
    assert flags == [("pcid", "require"), ("mpx", "disable")]
