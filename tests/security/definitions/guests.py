"""Definitions as libvirt saved them with a guest's memory, and those that a target makes of the same servers from its records."""

from __future__ import annotations

from pathlib import Path

from causeway.hardware.firmware import Tpm
from causeway.hardware.guest_devices import GuestDevices
from causeway.model.network import Vif
from causeway.virt.libvirt.guest_xml.domain_xml import GuestDisk, GuestHardware, Uefi, domain_xml
from causeway.virt.libvirt.guest_xml.uefi import Loader

UUID = "5f3c2f5e-0a5d-4a3e-9a55-1d5d6f1f5a01"
VOLUME = "0e8a8f60-57a8-4d0e-8a0e-2f5a9c6d0001"
_TARGET = Path("/target/instances") / UUID


def saved(name: str) -> str:
    """By libvirt 9.0, when it saved a guest of this driver. ``name``: i440fx or q35."""
    return (Path(__file__).parent / "saved" / f"{name}.xml").read_text()


def hardware(name: str) -> GuestHardware:
    is_q35 = name == "q35"
    return GuestHardware(
        uuid=UUID,
        name=f"instance-{UUID}",
        title="a server",
        virt_type="qemu",
        vcpus=1,
        memory_mb=128,
        console_log=_TARGET / "console.log",
        machine="q35" if is_q35 else "pc",
        uefi=Uefi(Loader(Path("/target/OVMF_CODE.fd"), Path("/target/OVMF_VARS.fd")), _TARGET / "nvram")
        if is_q35
        else None,
        tpm=Tpm("2.0", "tpm-crb") if is_q35 else None,
        devices=GuestDevices(
            disk_bus="scsi" if is_q35 else None,
            watchdog_action="reset" if is_q35 else None,
            tablet_bus="usb" if is_q35 else None,
        ),
        config_drive=_TARGET / "disk.config",
        disks=[
            GuestDisk("vda", _TARGET / "disk", "qcow2", is_root=True, bus="scsi" if is_q35 else None),
            GuestDisk("vdb", Path("/dev/target-volume"), "raw", is_block=True, serial=VOLUME),
        ],
        vifs=[
            Vif(
                id="3f0c9f0a-aaaa-bbbb-cccc-000000000001",
                address="fa:16:3e:aa:bb:cc",
                network_id="7c0e0000-1111-2222-3333-444444444444",
                vif_type="bridge",
                details={"bridge_name": "brq-target"},
                mtu=1450,
            )
        ],
        has_agent=is_q35,
        vnc_listen="127.0.0.1",
        serial_listen=("127.0.0.1", 10007),
    )


def wanted(name: str) -> str:
    return domain_xml(hardware(name))
