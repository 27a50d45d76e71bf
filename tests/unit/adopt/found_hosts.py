"""A host as it is found, and the records that agree with it."""

from __future__ import annotations

from causeway.adopt.hosts import RecordedHost, RecordedServer
from causeway.adopt.hosts.compare_disks import base_of
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.found_host import (
    FoundDisk,
    FoundFile,
    FoundFolder,
    FoundGuest,
    FoundHost,
    FoundHypervisor,
    FoundIdentity,
    FoundInterface,
)
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology
from causeway.model.pci import PciDevice
from causeway.model.states import PowerState, VmState

HOST, NODE = "host1", "6f1c2f7e-7c0b-4a51-a6e4-2d1a4a9a3f10"
SERVER = "f3b65539-293f-4cca-b4a8-5a9029f73b9f"
VOLUME = "27256493-da0f-4b96-a7a1-e6e5cda48713"
IMAGE = "906062fe-b667-402e-a362-8047a2d4c27e"
MAC, PCI = "fa:16:3e:c6:5c:b5", "0000:81:00.1"
INSTANCES, MOUNTS = "/var/lib/nova/instances", "/var/lib/nova/mnt"
SHARE = f"{MOUNTS}/2748472f1407dde6aa3f2bf4f5fb4ed9"


def local_disk(name: str, target: str, base: str | None = None) -> FoundDisk:
    return FoundDisk(target, source=f"{INSTANCES}/{SERVER}/{name}", disk_format="qcow2", size=2**30, base=base)


def found_guest() -> FoundGuest:
    return FoundGuest(
        SERVER,
        "instance-00000002",
        PowerState.RUNNING,
        is_novas=True,
        machine_type="pc-i440fx-7.2",
        vcpus=1,
        memory_mb=128,
        disks=[
            local_disk("disk", "vda", f"{INSTANCES}/_base/{base_of(IMAGE)}"),
            local_disk("disk.eph0", "vdb", f"{INSTANCES}/_base/ephemeral_1_40d1d2c"),
            FoundDisk("vdc", source=f"{SHARE}/volume-{VOLUME}", disk_format="raw", serial=VOLUME),
            FoundDisk("hda", device="cdrom", source=f"{INSTANCES}/{SERVER}/disk.config", disk_format="raw"),
        ],
        interfaces=[FoundInterface(MAC, "ethernet", "tap614554a3-c0", "virtio")],
        pci_addresses=[PCI],
        pinned={"0": [3]},
    )


def found_host() -> FoundHost:
    return FoundHost(
        HOST,
        identities=[FoundIdentity("/var/lib/nova/compute_id", NODE)],
        hypervisor=FoundHypervisor(
            hostname=HOST,
            guests=[found_guest()],
            instances_path=INSTANCES,
            folders=[FoundFolder(SERVER, [FoundFile("disk", 2**20, "qcow2"), FoundFile("disk.eph0", 2**20, "qcow2")])],
            mount_base=MOUNTS,
            mounts=[SHARE],
        ),
    )


def recorded_host() -> RecordedHost:
    cell = InstanceNUMACell(0, [], [0], 128, cpu_policy="dedicated", cpu_pinning_raw={"0": 3})
    instance = Instance(
        SERVER,
        "project",
        "user",
        "server",
        Flavor("gen1.small", "small", memory_mb=128, vcpus=1, root_gb=1),
        host=HOST,
        node=HOST,
        vm_state=VmState.ACTIVE,
        power_state=PowerState.RUNNING,
        image_ref=IMAGE,
        guest_name="instance-00000002",
        config_drive=True,
        network_info=[Vif("614554a3-c03d-48fb-a574-c5f4e38a0495", MAC.upper(), "network")],
        pci_devices=[PciDevice(PCI, "8086", "154d", instance_uuid=SERVER)],
        numa_topology=InstanceNUMATopology([cell]),
    )
    devices = [
        BlockDevice("1", SERVER, "image", "local", boot_index=0, image_id=IMAGE),
        BlockDevice("2", SERVER, "blank", "local"),
        BlockDevice("3", SERVER, "volume", "volume", volume_id=VOLUME),
    ]
    return RecordedHost(HOST, NODE, HOST, [RecordedServer(instance, devices)])
