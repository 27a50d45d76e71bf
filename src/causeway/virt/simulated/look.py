"""Looks at what a simulated host has, as `causeway.virt.libvirt.look` does. Changes nothing, and needs no driver."""

from __future__ import annotations

from pathlib import Path

from causeway.model.found_host import FoundDisk, FoundFile, FoundFolder, FoundGuest, FoundHypervisor, FoundInterface
from causeway.model.image import QCOW2, RAW
from causeway.model.states import PowerState
from causeway.virt.simulated import disk
from causeway.virt.simulated.guest import Guest
from causeway.virt.simulated.host_files import guest_of


def look(hostname: str, state_dir: Path) -> FoundHypervisor:
    """What the host with these files has."""
    instances = state_dir / "instances"
    guests = (guest_of(path) for path in sorted(state_dir.glob("guests/*.json")))
    return FoundHypervisor(
        hostname=hostname,
        guests=[_guest(guest) for guest in guests if guest is not None],
        instances_path=str(instances),
        folders=[_folder(path) for path in sorted(instances.glob("*")) if path.is_dir()],
        mount_base=str(state_dir / "mnt"),
    )


def _guest(guest: Guest) -> FoundGuest:
    disks = [_local(device, path) for device, path in sorted(guest.local_files().items())]
    volumes = [
        # Hosts mount nothing for it.
        FoundDisk(volume.device, kind="network", source=volume.path, disk_format=RAW, serial=volume.volume_id)
        for volume in guest.volumes
    ]
    cells = guest.numa_topology.cells if guest.numa_topology is not None else []
    return FoundGuest(
        uuid=guest.uuid,
        name=f"simulated-{guest.uuid}",
        power_state=guest.power_state,
        is_novas=True,
        vcpus=guest.vcpus,
        memory_mb=guest.memory_mb,
        has_saved_memory=guest.power_state is PowerState.SUSPENDED,
        disks=disks + volumes,
        interfaces=[FoundInterface(port.mac.lower(), kind="simulated") for port in guest.ports],
        pci_addresses=sorted({*guest.pci_devices, *(port.pci_slot for port in guest.ports if port.pci_slot)}),
        pinned={str(cpu): [host] for cell in cells for cpu, host in cell.cpu_pinning.items()},
    )


def _local(device: str, path: Path) -> FoundDisk:
    found = FoundDisk(Path(device).name, source=str(path), disk_format=QCOW2)
    content = disk.decode(path.read_bytes()) if path.exists() else None
    if content is None:
        found.lack = f"{path} is missing or damaged"
    else:
        found.size = content.header.size
    return found


def _folder(path: Path) -> FoundFolder:
    files = [FoundFile(file.name, file.stat().st_size, QCOW2) for file in sorted(path.iterdir())]
    return FoundFolder(path.name, files)
