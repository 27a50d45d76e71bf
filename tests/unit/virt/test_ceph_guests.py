"""Guests with volumes in Ceph: nothing asks QEMU to describe their disks, because it would read from Ceph and wait for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("libvirt")
import libvirt

from causeway.errors import GuestFailed
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.virt.driver import ExpectedDisk
from causeway.virt.libvirt import devices
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.driver import LibvirtDriver
from causeway.virt.libvirt.guest_xml.domain_xml import GuestDisk, GuestHardware, domain_xml
from causeway.virt.libvirt.guest_xml.rbd_source import CephAccess, RbdSource
from causeway.virt.libvirt.live import live_source
from causeway.virt.libvirt.storage import copies, qemu_img
from causeway.virt.libvirt.storage.disks import InstanceDisks
from tests.unit.virt.ceph_host import DATA

UUID = "8f1a4b0e-66c5-4d8c-9d35-2b3b0d0c0001"
VOLUME = "0b4a3c0e-6d0f-4b3c-9d6b-0a3f1a1f0001"


class Domain:
    """It runs, on a local disk, with a volume in Ceph or elsewhere."""

    def __init__(self, folder: Path, volume: RbdSource | Path) -> None:
        self.resized: list[tuple[str, int, int]] = []
        self.asked: list[str] = []
        self._xml = domain_xml(
            GuestHardware(
                uuid=UUID,
                name="guest",
                title="",
                virt_type="qemu",
                vcpus=1,
                memory_mb=64,
                console_log=folder / "log",
                disks=[
                    GuestDisk("vda", folder / "disk", "qcow2", is_root=True),
                    GuestDisk("vdb", volume, "raw", serial=VOLUME),
                ],
            )
        )

    def XMLDesc(self, *_flags: int) -> str:
        return self._xml

    def isActive(self) -> bool:
        return True

    def isPersistent(self) -> bool:
        return True

    def state(self) -> tuple[int, int]:
        return libvirt.VIR_DOMAIN_RUNNING, 0

    def diskErrors(self) -> dict[str, int]:
        return {}

    def blockInfo(self, name: str) -> list[int]:
        self.asked.append(name)
        return [1 << 20, 0, 0]

    def blockResize(self, name: str, size: int, flags: int) -> None:
        self.resized.append((name, size, flags))


class Hypervisor:
    def __init__(self, domain: Domain | None) -> None:
        self._domain = domain

    def call(self, _what: str, function: Any, **_options: Any) -> Any:
        return function(self)

    def lookupByUUIDString(self, _uuid: str) -> Domain:
        if self._domain is None:
            error = libvirt.libvirtError("gone")
            error.err = (libvirt.VIR_ERR_NO_DOMAIN, 0, "gone", 0, "", None, None, -1, -1)
            raise error
        return self._domain

    def getVersion(self) -> int:
        return 1


def connection(domain: Domain | None) -> Connection:
    return cast(Connection, Hypervisor(domain))


IN_CEPH = RbdSource("volumes/volume-1", CephAccess(()))


@pytest.mark.parametrize("volume", [IN_CEPH, Path("/dev/sdx")])
def test_a_copy_is_judged_without_a_look_that_ceph_can_hold_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, volume: RbdSource | Path
) -> None:
    monkeypatch.setattr(qemu_img, "info", lambda _path: {"virtual-size": 1 << 20})
    domain = Domain(tmp_path, volume)
    found = copies.of_guest(connection(domain), "uuid", tmp_path, [ExpectedDisk("disk", 1)], [VOLUME], 9)
    assert found == []
    assert domain.asked == ([] if volume is IN_CEPH else [str(tmp_path / "disk")])


def test_what_travels_with_a_guest_is_said_without_such_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disks, instance = (
        InstanceDisks(tmp_path, 9),
        Instance(UUID, "project", "user", "vm1", Flavor("1", "small", 1, 64, 1)),
    )
    folder = disks.folder(instance.uuid)
    folder.mkdir(parents=True)
    monkeypatch.setattr(qemu_img, "virtual_size", lambda _path: 2 << 20)
    monkeypatch.setattr(qemu_img, "layer_below", lambda _path: None)
    domain = Domain(folder, IN_CEPH)
    source = live_source.describe(connection(domain), disks, instance)
    assert [(disk.name, disk.size) for disk in source.disks] == [("disk", 2 << 20)]
    assert domain.asked == []


def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, domain: Domain | None, **device: Any) -> None:
    driver = LibvirtDriver("test:///default", "host1", tmp_path)
    monkeypatch.setattr(driver, "_connection", connection(domain))
    monkeypatch.setattr(driver._volumes._ceph, "size", lambda _data: 3 << 30)
    info = {"driver_volume_type": "rbd", "data": DATA}
    given = {"volume_id": VOLUME, "connection_info": info, **device}
    driver.extend_volume("uuid", BlockDevice("b", "uuid", "volume", "volume", **given), 2 << 30)


def test_a_volume_that_is_extended_twice_does_not_become_smaller_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = Domain(tmp_path, IN_CEPH)
    extended(tmp_path, monkeypatch, domain)
    assert domain.resized == [("vdb", 3 << 30, libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES)]


def test_only_a_guest_that_has_the_volume_is_shown_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain(tmp_path, IN_CEPH)
    devices.resize(connection(domain), "uuid", "another", 1)
    devices.resize(connection(None), "uuid", VOLUME, 1)
    assert domain.resized == []
    with pytest.raises(GuestFailed, match="is not in Ceph"):
        extended(tmp_path, monkeypatch, domain, connection_info={"driver_volume_type": "nfs", "data": {}})
