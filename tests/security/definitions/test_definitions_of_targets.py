"""The source of a live migration has its libvirt read the definition that the target sent: if `domain_xml` makes such ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from causeway.errors import GuestRefused
from causeway.hardware.guest_devices import GuestDevices
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology
from causeway.virt.libvirt.guest_xml.definition_shape import check
from causeway.virt.libvirt.guest_xml.domain_xml import LIMITS, GuestDisk, domain_xml
from causeway.virt.libvirt.guest_xml.migratable_xml import name_at_target
from causeway.virt.libvirt.guest_xml.processor import Processor
from causeway.virt.libvirt.guest_xml.rbd_source import CephAccess, Monitor, RbdSource
from tests.security.bindings.sockets import port_at_socket
from tests.security.definitions.guests import hardware, wanted
from tests.security.definitions.test_foreign_definitions import with_device, with_part

_CELL = InstanceNUMACell(id=1, cpuset=[], pcpuset=[0], memory=128, cpu_pinning_raw={"0": 3}, pagesize=2048)
IN_CEPH = RbdSource(
    "volumes/volume-1",
    CephAccess((Monitor("10.0.0.1", "6789"), Monitor("fd00::1")), "cinder", "4a1e6a26-0e4e-4c5e-9d4f-000000000001"),
)
OURS = {
    "i440fx": hardware("i440fx"),
    "q35": hardware("q35"),
    "pinned": dataclasses.replace(
        hardware("q35"),
        numa_topology=InstanceNUMATopology(cells=[_CELL]),
        devices=GuestDevices(
            locked_memory=True, boot_menu=True, rng_bytes=1, rng_period=2, has_queues=True, video_ram=8
        ),
    ),
    "with KVM": dataclasses.replace(
        hardware("i440fx"),
        virt_type="kvm",
        processor=Processor("custom", ["Nehalem"], ["-vmx", "aes"], "Nehalem"),
        shared_cpus=[1, 2, 5],
        title="\u00dcber, \"quoted\" & 'named' <server>",
        vcpus=4,
    ),
    "with DPDK": dataclasses.replace(
        hardware("q35"), numa_topology=InstanceNUMATopology(cells=[_CELL]), vifs=[port_at_socket()]
    ),
    "with SCSI": dataclasses.replace(hardware("q35"), devices=GuestDevices(cdrom_bus="scsi")),
    "with a volume in Ceph": dataclasses.replace(
        hardware("i440fx"),
        disks=[GuestDisk("vda", IN_CEPH, "raw", is_root=True, serial="s", limits=dict.fromkeys(LIMITS, 9))],
    ),
    "without consoles": dataclasses.replace(hardware("i440fx"), serial_listen=None, vnc_listen=None),
}


@pytest.mark.parametrize("name", OURS)
def test_what_a_target_of_ours_makes_is_accepted(name: str) -> None:
    check(domain_xml(OURS[name]))


HOSTILE: dict[str, Callable[[str], str]] = {
    "an emulator": with_device("<emulator>/x</emulator>"),
    "a folder of the host": with_device("<filesystem type='mount'><source dir='/'/><target dir='x'/></filesystem>"),
    "a device of the host": with_device("<hostdev mode='subsystem' type='pci'/>"),
    "a disk over the network": with_device("<disk type='network'><source protocol='nbd' name='x'/></disk>"),
    "an image in Ceph with options": with_device(
        "<disk type='network'><source protocol='rbd' name='volumes/x:conf=/etc/shadow'/></disk>"
    ),
    "a key for Ceph that is a file": with_device(
        "<disk type='network'><source protocol='rbd' name='p/i'><config file='/etc/shadow'/></source></disk>"
    ),
    "a disk at an address": with_device("<disk type='file' device='disk'><source file='/x' index='1'/></disk>"),
    "a path to above": with_device("<disk type='file' device='disk'><source file='/x/../../etc/shadow'/></disk>"),
    "a path from here": with_device("<disk type='file' device='disk'><source file='etc/shadow'/></disk>"),
    "a program of a port": with_device("<interface type='bridge'><script path='/x'/></interface>"),
    "a port of a user": with_device("<interface type='user'/>"),
    "random numbers of a file": with_device("<rng model='virtio'><backend model='random'>/etc/shadow</backend></rng>"),
    "a TPM of the host": with_device("<tpm model='tpm-tis'><backend type='passthrough'/></tpm>"),
    "a serial port that connects": with_device(
        "<serial type='tcp'><source mode='connect' host='h' service='1'/></serial>"
    ),
    "a screen with a socket": with_device("<graphics type='vnc' socket='/x'/>"),
    "arguments of QEMU": with_part("<q:commandline xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'/>"),
    "a label": with_part("<seclabel type='none'/>"),
    "a loader that is written": with_part("<os><loader readonly='no' type='pflash'>/x</loader></os>"),
    "a kernel": with_part("<os><kernel>/x</kernel></os>"),
    "entities": lambda xml: f"<!DOCTYPE x []>{xml}",
    "no document": lambda _xml: "x",
    "another document": lambda _xml: "<network/>",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_no_target_of_ours_makes_is_refused(case: str) -> None:
    with pytest.raises(GuestRefused):
        check(HOSTILE[case](wanted("i440fx")))


def test_a_guest_gets_the_name_that_its_target_has_for_it() -> None:
    definition = domain_xml(OURS["q35"])
    uuid = OURS["q35"].uuid
    assert name_at_target(definition, uuid) == OURS["q35"].name


@pytest.mark.parametrize(
    "name", ["", "-x", "../a", "a b", "a\nb", "x" * 129, "instance-00000000-1111-2222-3333-444444444444"]
)
def test_a_target_can_not_give_a_guest_any_name(name: str) -> None:
    """Nor that of another server's guest."""
    definition = domain_xml(dataclasses.replace(OURS["q35"], name=name))
    with pytest.raises(GuestRefused):
        name_at_target(definition, OURS["q35"].uuid)
