"""What is read from definitions of guests that Causeway did not make, and from the folders of their host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.model.found_host import FoundDisk, FoundGuest, FoundInterface
from causeway.model.states import PowerState
from causeway.virt.libvirt import look
from causeway.virt.libvirt.guest_xml.found_guest import cpus, read

UUID = "f3b65539-293f-4cca-b4a8-5a9029f73b9f"
VOLUME = "27256493-da0f-4b96-a7a1-e6e5cda48713"
# Of Nova 34, with what other guests have.
NOVAS = f"""
<domain type='qemu' id='1'>
  <name>instance-00000002</name>
  <uuid>{UUID}</uuid>
  <metadata><nova:instance xmlns:nova="http://openstack.org/xmlns/libvirt/nova/1.1"/></metadata>
  <memory unit='KiB'>131072</memory>
  <vcpu placement='static'>1</vcpu>
  <cputune><vcpupin vcpu='0' cpuset='2-3,^2'/></cputune>
  <os>
    <type arch='x86_64' machine='pc-i440fx-7.2'>hvm</type>
    <nvram>/var/lib/libvirt/qemu/nvram/instance-00000002_VARS.fd</nvram>
  </os>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='none'/>
      <source file='/var/lib/nova/instances/{UUID}/disk' index='2'/>
      <backingStore type='file'><source file='/var/lib/nova/instances/_base/cc16'/></backingStore>
      <target dev='vda' bus='virtio'/>
    </disk>
    <disk type='network' device='disk'>
      <driver name='qemu' type='raw'/>
      <source protocol='rbd' name='volumes/volume-{VOLUME}'><encryption format='luks'/></source>
      <target dev='vdb' bus='virtio'/>
      <serial>{VOLUME}</serial>
    </disk>
    <disk type='file' device='cdrom'><target dev='hda' bus='ide'/></disk>
    <interface type='ethernet'>
      <mac address='FA:16:3E:C6:5C:B5'/><target dev='tap614554a3-c0'/><model type='virtio'/>
    </interface>
    <interface type='hostdev'>
      <mac address='fa:16:3e:00:00:01'/>
      <source><address type='pci' domain='0x0000' bus='0x81' slot='0x00' function='0x1'/></source>
    </interface>
    <hostdev mode='subsystem' type='pci'>
      <source><address domain='0x0000' bus='0xAf' slot='0x1f' function='0x7'/></source>
    </hostdev>
    <hostdev mode='subsystem' type='mdev'><source><address uuid='{VOLUME}'/></source></hostdev>
    <hostdev mode='subsystem' type='usb'/>
    <filesystem type='mount'><source dir='/srv'/><target dir='share'/></filesystem>
    <memory model='nvdimm'/>
    <tpm model='tpm-crb'/>
  </devices>
  <launchSecurity type='sev'/>
</domain>
"""


def read_it(xml: str) -> FoundGuest:
    return read(xml, uuid=UUID, name="instance-00000002", power_state=PowerState.RUNNING)


def test_a_guest_of_nova_is_read_with_all_that_matters() -> None:
    assert read_it(NOVAS) == FoundGuest(
        UUID,
        "instance-00000002",
        PowerState.RUNNING,
        is_novas=True,
        machine_type="pc-i440fx-7.2",
        vcpus=1,
        memory_mb=128,
        disks=[
            FoundDisk("vda", source=f"/var/lib/nova/instances/{UUID}/disk", disk_format="qcow2"),
            FoundDisk(
                "vdb",
                kind="network",
                protocol="rbd",
                source=f"volumes/volume-{VOLUME}",
                disk_format="raw",
                serial=VOLUME,
                is_encrypted=True,
            ),
            FoundDisk("hda", device="cdrom"),
        ],
        interfaces=[
            FoundInterface("fa:16:3e:c6:5c:b5", "ethernet", "tap614554a3-c0", "virtio"),
            FoundInterface("fa:16:3e:00:00:01", "hostdev"),
        ],
        pci_addresses=["0000:81:00.1", "0000:af:1f.7"],
        mediated_devices=[VOLUME],
        other_host_devices=["usb"],
        has_persistent_memory=True,
        has_encrypted_memory=True,
        shares=["/srv"],
        has_tpm=True,
        nvram="/var/lib/libvirt/qemu/nvram/instance-00000002_VARS.fd",
        pinned={"0": [3]},
    )


@pytest.mark.parametrize("xml", ["<domain/>", "<domain><devices><disk/><interface/><hostdev/></devices></domain>"])
def test_a_definition_that_says_little_is_read_all_the_same(xml: str) -> None:
    found = read_it(xml)
    assert not found.is_novas and found.vcpus == 0 and found.pci_addresses == []


def test_what_is_no_xml_is_refused() -> None:
    with pytest.raises(ValueError, match="no XML"):
        read_it("<domain>")


def test_texts_are_one_line_that_is_not_too_long() -> None:
    (found,) = read_it(
        f"<domain><devices><disk><serial>a&#10;b&#x2028;[31m{'x' * 9000}</serial></disk></devices></domain>"
    ).disks
    assert found.serial is not None and found.serial.startswith("a?b?[31mx") and len(found.serial) == 1024


@given(st.text(max_size=40))
def test_any_text_is_a_list_of_cpus(listed: str) -> None:
    assert all(0 <= cpu <= 99999 for cpu in cpus(listed))


def test_a_list_of_cpus_is_not_longer_than_a_host_has_them() -> None:
    assert cpus("0-99999") == set(range(4097)) and cpus("0-3,^1,8") == {0, 2, 3, 8}


def test_mounts_below_a_folder_are_found_also_with_spaces(tmp_path: Path) -> None:
    table = tmp_path / "mounts"
    table.write_text(
        "a:/x /var/lib/nova/mnt/one\\040two nfs4 rw 0 0\nb /var/lib/nova/mnt ext4 rw 0 0\nc /var/lib/nova/mnt2 ext4 rw\n\n"
    )
    assert look.mounts_below(Path("/var/lib/nova/mnt"), table) == ["/var/lib/nova/mnt/one two"]


def test_folders_of_guests_are_listed_with_the_formats_of_their_disks(tmp_path: Path) -> None:
    folder = tmp_path / UUID
    folder.mkdir()
    (folder / "disk").write_bytes(b"QFI\xfb" + bytes(60))
    (folder / "disk.eph0").write_bytes(bytes(64))
    (folder / "console.log").write_text("hello")
    (folder / "disk.info").write_text(json.dumps({"/somewhere/disk": "qcow2", "other": "raw"}))
    (folder / "link").symlink_to("/etc/passwd")
    (tmp_path / f"{UUID}_resize").mkdir()
    for other in ("_base", "locks", "causeway"):
        (tmp_path / other).mkdir()
    first, second = look._folders(tmp_path)
    assert [(file.name, file.disk_format) for file in first.files] == [
        ("console.log", None),
        ("disk", "qcow2"),
        ("disk.eph0", "raw"),
        ("disk.info", None),
    ]
    assert first.noted_formats == {"/somewhere/disk": "qcow2", "other": "raw"}
    assert (second.name, second.files) == (f"{UUID}_resize", [])


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"a": ' + b"[" * 60000])
def test_a_damaged_note_of_formats_is_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "disk.info").write_bytes(content)
    assert look._noted(tmp_path / "disk.info") == {}


def test_a_host_without_the_folder_of_guests_has_none(tmp_path: Path) -> None:
    assert look._folders(tmp_path / "none") == []
