"""What guests look like to libvirt."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from causeway.errors import GuestFailed
from causeway.model.network import Vif
from causeway.virt.libvirt.guest_xml.domain_xml import (
    GuestDisk,
    GuestHardware,
    agent_listens,
    destination_xml,
    device_of_serial,
    disk_xml,
    domain_xml,
    interface_xml,
)
from causeway.virt.libvirt.guest_xml.rbd_source import CephAccess, Monitor, RbdSource, name_of
from causeway.virt.libvirt.port_devices import device_of_port

UUID = "8f1a4b0e-66c5-4d8c-9d35-2b3b0d0c0001"
PORT = Vif(
    id="3f0c9f0a-aaaa-bbbb-cccc-000000000001",
    address="fa:16:3e:aa:bb:cc",
    network_id="7c0e0000-1111-2222-3333-444444444444",
    mtu=1442,
    vif_type="bridge",
    details={"bridge_name": "brq7c0e0000-11"},
)


def guest(**changes: object) -> ET.Element:
    hardware = GuestHardware(
        uuid=UUID,
        name=f"instance-{UUID}",
        title="",
        virt_type="qemu",
        vcpus=2,
        memory_mb=192,
        console_log=Path("/instances/console.log"),
    )
    for name, value in changes.items():
        setattr(hardware, name, value)
    return ET.fromstring(domain_xml(hardware))


def test_guest_is_found_by_the_servers_uuid_and_has_the_flavors_size() -> None:
    domain = guest()
    assert domain.findtext("uuid") == UUID
    assert domain.findtext("name") == f"instance-{UUID}"
    memory = domain.find("memory")
    assert memory is not None and (memory.text, memory.get("unit")) == ("192", "MiB")
    assert domain.findtext("vcpu") == "2"
    assert domain.find("features/acpi") is not None


@pytest.mark.parametrize("serial", [UUID, None])
def test_firmware_says_what_clouds_of_this_kind_say(serial: str | None) -> None:
    """cloud-init looks for the metadata service only if the product is this one."""
    domain = guest(serial=serial)
    assert domain.find("os/smbios[@mode='sysinfo']") is not None
    said = {each.get("name"): each.text for each in domain.iterfind("sysinfo[@type='smbios']/system/entry")}
    assert (said["manufacturer"], said["product"], said["family"]) == (
        "OpenStack Foundation",
        "OpenStack Nova",
        "Virtual Machine",
    )
    assert (said["uuid"], said.get("serial")) == (UUID, serial)
    assert said["version"]


def test_emulated_guest_limits_the_code_cache_and_a_kvm_guest_gets_the_hosts_processor() -> None:
    assert guest().findtext("features/tcg/tb-cache") == "64"
    kvm = guest(virt_type="kvm")
    assert kvm.get("type") == "kvm"
    assert kvm.find("features/tcg") is None
    processor = kvm.find("cpu")
    assert processor is not None and processor.get("mode") == "host-model"


def test_name_of_a_server_can_be_anything() -> None:
    assert guest(title='a <b> & "c"\nd').findtext("title") == 'a <b> & "c" d'


def test_root_disk_boots_and_a_volume_is_found_by_its_serial() -> None:
    root = GuestDisk("vda", Path("/instances/disk"), "qcow2", is_root=True)
    volume = GuestDisk("vdb", Path("/dev/sdx"), "raw", is_block=True, serial="volume-id", read_only=True)
    domain = guest(disks=[root, volume])
    first, second = domain.findall("devices/disk")
    assert first.find("boot") is not None and second.find("boot") is None
    assert first.find("source").attrib == {"file": "/instances/disk"}  # type: ignore[union-attr]
    assert second.find("source").attrib == {"dev": "/dev/sdx"}  # type: ignore[union-attr]
    assert second.find("readonly") is not None
    found = device_of_serial(ET.tostring(domain, encoding="unicode"), "volume-id")
    assert found is not None and ET.fromstring(found).find("target").get("dev") == "vdb"  # type: ignore[union-attr]
    assert device_of_serial(ET.tostring(domain, encoding="unicode"), "another") is None


IMAGE = RbdSource(
    "volumes/volume-id",
    CephAccess(
        (Monitor("10.0.0.1", "6789"), Monitor("fd00::1", None)), "cinder", "4a1e6a26-0e4e-4c5e-9d4f-000000000001"
    ),
)


def test_an_image_in_ceph_is_opened_by_the_guest_itself() -> None:
    disk = guest(disks=[GuestDisk("vdb", IMAGE, "raw", serial="volume-id")]).find("devices/disk")
    assert disk is not None and disk.get("type") == "network"
    source = disk.find("source")
    assert source is not None and source.attrib == {"protocol": "rbd", "name": "volumes/volume-id"}
    hosts = [each.attrib for each in source.findall("host")]
    assert hosts == [{"name": "10.0.0.1", "port": "6789"}, {"name": "fd00::1"}]
    auth, secret = source.find("auth"), source.find("auth/secret")
    assert auth is not None and auth.get("username") == "cinder"
    assert secret is not None and secret.attrib == {"type": "ceph", "uuid": IMAGE.access.secret_uuid}


def test_an_image_in_ceph_that_needs_no_key_names_no_account() -> None:
    disk = GuestDisk("vdb", RbdSource("volumes/x", CephAccess((), "cinder")), "raw")
    assert ET.fromstring(disk_xml(disk)).find("source/auth") is None


def test_the_destination_of_a_copy_in_ceph_has_its_account_and_so_many_bytes_as_are_used() -> None:
    made = ET.fromstring(destination_xml(GuestDisk("vdb", IMAGE, "raw", serial="x"), part=512))
    assert [child.tag for child in made] == ["driver", "source"]
    assert [child.tag for child in made.iterfind("source/*")] == ["host", "host", "auth", "slices"]


def test_an_image_in_ceph_has_a_name_that_is_the_same_however_it_is_reached() -> None:
    for access in (IMAGE.access, CephAccess(())):
        made = ET.fromstring(disk_xml(GuestDisk("vdb", RbdSource(IMAGE.image, access), "raw")))
        assert name_of(made) == str(IMAGE) == "rbd:volumes/volume-id"
    assert name_of(ET.fromstring(disk_xml(GuestDisk("vdb", Path("/dev/sdx"), "raw", is_block=True)))) == "/dev/sdx"


def test_an_image_in_ceph_has_no_path() -> None:
    with pytest.raises(GuestFailed):
        _ = GuestDisk("vdb", IMAGE, "raw").path


@pytest.mark.parametrize(("target", "bus"), [("vdb", "virtio"), ("sdb", "scsi"), ("hdb", "ide")])
def test_bus_follows_the_device_name(target: str, bus: str) -> None:
    disk = GuestDisk(target, Path("/v"), "raw")
    assert ET.fromstring(disk_xml(disk)).find("target").get("bus") == bus  # type: ignore[union-attr]
    has_controller = guest(disks=[disk]).find("devices/controller[@model='virtio-scsi']") is not None
    assert has_controller is (bus == "scsi")


def test_config_drive_is_a_cd_and_takes_no_disks_name() -> None:
    domain = guest(config_drive=Path("/instances/disk.config"))
    drive = domain.find("devices/disk[@device='cdrom']")
    assert drive is not None and drive.find("target").get("bus") == "ide"  # type: ignore[union-attr]


def test_port_is_plugged_into_the_bridge_of_its_binding() -> None:
    domain = guest(vifs=[PORT])
    interface = domain.find("devices/interface")
    assert interface is not None
    assert interface.find("source").get("bridge") == "brq7c0e0000-11"  # type: ignore[union-attr]
    assert interface.find("mac").get("address") == PORT.address  # type: ignore[union-attr]
    assert interface.find("mtu").get("size") == "1442"  # type: ignore[union-attr]
    assert len(interface.find("target").get("dev") or "") <= 15  # type: ignore[union-attr]
    assert (
        device_of_port(ET.tostring(domain, encoding="unicode"), dataclasses.replace(PORT, address=PORT.address.upper()))
        is not None
    )


def test_the_tap_device_of_a_port_in_open_vswitch_is_there_before() -> None:
    port = Vif(id="port-id", address="fa:16:3e:00:00:01", network_id="n" * 36, vif_type="ovs")
    interface = ET.fromstring(interface_xml(port, queues=2))
    assert interface.get("type") == "ethernet"
    assert interface.find("target").attrib == {"dev": "tapport-id", "managed": "no"}  # type: ignore[union-attr]
    assert interface.find("driver[@queues='2']") is not None
    assert interface.find("source") is None and interface.find("virtualport") is None


def test_a_hybrid_port_is_plugged_into_its_own_bridge() -> None:
    details = {"ovs_hybrid_plug": True, "bridge_name": "br-int"}
    port = Vif(id="1234567890123", address="fa:16:3e:00:00:01", network_id="n" * 36, vif_type="ovs", details=details)
    interface = ET.fromstring(interface_xml(port))
    assert (interface.get("type"), interface.find("source").attrib) == ("bridge", {"bridge": "qbr12345678901"})  # type: ignore[union-attr]
    assert interface.find("target").attrib == {"dev": "tap12345678901"}  # type: ignore[union-attr]
    assert interface.find("virtualport") is None


@pytest.mark.parametrize("vif_type", [None, "unbound", "binding_failed"])
def test_port_that_is_not_bound_is_refused(vif_type: str | None) -> None:
    with pytest.raises(GuestFailed, match="binding type"):
        interface_xml(Vif(id="port-id", address="fa:16:3e:00:00:01", network_id="n", vif_type=vif_type))


def test_console_is_appended_to_a_file() -> None:
    source = guest().find("devices/serial/source")
    assert source is not None and source.attrib == {"path": "/instances/console.log", "append": "on"}


def test_a_guest_has_a_channel_for_its_agent_if_its_image_says_that_it_has_one() -> None:
    assert guest().find("devices/channel") is None
    domain = guest(has_agent=True)
    target = domain.find("devices/channel[@type='unix']/target")
    assert target is not None and target.attrib == {"type": "virtio", "name": "org.qemu.guest_agent.0"}
    assert not agent_listens(ET.tostring(domain, encoding="unicode"))
    target.set("state", "disconnected")
    assert not agent_listens(ET.tostring(domain, encoding="unicode"))
    target.set("state", "connected")
    assert agent_listens(ET.tostring(domain, encoding="unicode"))
