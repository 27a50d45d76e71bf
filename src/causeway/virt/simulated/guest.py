"""A simulated guest: what the hypervisor knows of it, and what the guest does when it boots."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase

from causeway.errors import GuestFailed
from causeway.hardware.firmware import of_instance
from causeway.hardware.port_devices import passed_through
from causeway.model.block_device import BlockDevice
from causeway.model.network import Vif
from causeway.model.numa import InstanceNUMATopology
from causeway.model.states import PowerState
from causeway.virt.driver import RESCUE_DISK, ROOT_DISK, GuestSpec
from causeway.virt.live_guest import LiveProgress
from causeway.virt.simulated import disk, volume
from causeway.virt.simulated.firmware import names_of
from causeway.virt.simulated.habits import Habits, habits_of


@dataclass
class AttachedVolume:
    volume_id: str | None
    device: str  # vdb
    path: str
    # The volume that this one is being copied to: the guest's writes go to both.
    copy: str | None = None


@dataclass
class Port:
    id: str
    mac: str
    ip: str | None
    # PCI address, if the port is a device of the host.
    pci_slot: str | None = None


@dataclass
class Guest:
    """A guest's definition and power state, in one file. ``root_disk``: None if the root disk is a volume."""

    uuid: str
    host: str
    hostname: str
    vcpus: int
    memory_mb: int
    root_device: str
    root_disk: str | None
    power_state: PowerState
    volumes: list[AttachedVolume] = field(default_factory=list)
    ports: list[Port] = field(default_factory=list)
    numa_topology: InstanceNUMATopology | None = None
    pci_devices: list[str] = field(default_factory=list)
    # device -> file of ephemeral disks and swap
    local_disks: dict[str, str] = field(default_factory=dict)
    # It boots its rescue disk, which is then its root disk.
    is_rescued: bool = False
    # Lines in its memory. A boot loses them, a live migration does not.
    memory: list[str] = field(default_factory=list)
    # Names of the files beside its disks with the state of its firmware and TPM.
    firmware: list[str] = field(default_factory=list)
    # How often its agent has stopped its file systems, and whether they are stopped now.
    freezes: int = 0
    is_frozen: bool = False
    # The state directory of the host that it is being handed over to, while it stands still; ``was``: its state before.
    going_to: str | None = None
    was: PowerState | None = None
    # What it does while it runs (`activity`): bytes, and bytes per second.
    data: float = 0.0
    disk_rate: float = 0.0
    # The most that it writes until it boots again; None: as much as it likes.
    write_limit: float | None = None
    memory_rate: float = 0.0
    # The time on its host's clock up to which it has done that; None: it does not run.
    caught_up: float | None = None
    # For how many seconds it did not run before it ran here; None: nobody counted.
    stood_still: float | None = None
    # How much of it arrived when it migrated to its host.
    came: LiveProgress | None = None

    def refuse_devices_of_host(self) -> None:
        """Raises `GuestFailed` if the guest has devices of its host, whose state no hypervisor can take along."""
        held = [*self.pci_devices, *(port.pci_slot for port in self.ports if port.pci_slot)]
        if held:
            raise GuestFailed(
                f"Guest {self.uuid} has devices of its host: its memory can't leave it.", details=", ".join(held)
            )

    def devices(self) -> dict[str, Path]:
        """device -> file of each local disk and volume, sorted by device."""
        found = {attached.device: Path(attached.path) for attached in self.volumes}
        return dict(sorted((found | self.local_files()).items()))

    def sizes(self) -> dict[str, int]:
        """device -> size in MiB of each local disk."""
        headers = {device: disk.load(path).header for device, path in self.local_files().items()}
        return {device: header.size_mb or header.size_gb * 1024 for device, header in sorted(headers.items())}

    def read(self, device: str) -> list[str]:
        """The lines on a disk, as the guest sees them."""
        path = self.devices()[device]
        return disk.load(path).all_lines if device in self.local_files() else volume.read_lines(path)

    def write(self, device: str, line: str) -> None:
        """Writes a line to a disk, and to the volume that it is being copied to."""
        path = self.devices()[device]
        if device in self.local_files():
            if disk.is_cut_off(path, self.host, self.uuid):
                raise GuestFailed(
                    f"The disk {device} of guest {self.uuid} can't be written any more.", details=self.host
                )
            disk.append(path, line)
        else:
            volume.append_line(path, line)
            for attached in self.volumes:
                if attached.device == device and attached.copy is not None:
                    volume.append_line(Path(attached.copy), line)

    def volume(self, volume_id: str | None) -> AttachedVolume | None:
        return next((attached for attached in self.volumes if attached.volume_id == volume_id), None)

    def end_copies(self) -> None:
        """Ends all copies of volumes: the guest's process made them, and has ended."""
        for attached in self.volumes:
            attached.copy = None

    def boot(self) -> str:
        """Marks each disk with a line, and returns what the guest writes to its console meanwhile."""
        boot = sum(line.startswith("boot=") for line in self.read(self.root_device)) + 1
        self.memory = [f"boot={boot},id={secrets.token_hex(4)}"]
        port = self.ports[0] if self.ports else None
        console = [
            f"CAUSEWAY-GUEST boot={boot} vcpus={self.vcpus} memory_mb={self.memory_mb}"
            f" mac={port.mac if port else '-'} ip={(port.ip if port else None) or '-'} hostname={self.hostname}"
        ]
        for device in self.devices():
            if not self.is_rescued or device == self.root_device:
                # A rescued server's own disks are looked at, and not written to.
                self.write(device, f"boot={boot},id={secrets.token_hex(4)}")
            console.append(self.marker(device))
        return "\n".join([*console, "CAUSEWAY-READY", ""])

    def marker(self, device: str) -> str:
        lines = self.read(device)
        return f"CAUSEWAY-MARKER disk={device} lines={len(lines)} first={lines[0] if lines else '-'}"

    def local_files(self) -> dict[str, Path]:
        """device -> file of each local disk."""
        found = {device: Path(path) for device, path in self.local_disks.items()}
        if self.root_disk is not None:
            found[self.root_device] = Path(self.root_disk)
        return found


def define(spec: GuestSpec, host: str, disks: Path, power_state: PowerState, usual: Habits) -> Guest:
    """The guest that ``spec`` describes. ``disks``: the directory of its local disks. ``usual``: see `habits_of`.

    Raises `GuestFailed` if a volume can't be opened.
    """
    instance = spec.instance
    habits = habits_of(instance.flavor, usual)
    root_volume = next((bdm for bdm in spec.volumes if bdm.is_root), None)
    root_device = root_volume.device_name if root_volume is not None else None
    guest = Guest(
        uuid=instance.uuid,
        host=host,
        hostname=instance.hostname or instance.display_name,
        vcpus=instance.flavor.vcpus,
        memory_mb=instance.flavor.memory_mb,
        root_device=short_name(root_device or instance.root_device_name or "/dev/vda"),
        root_disk=None if root_volume is not None else str(disks / ROOT_DISK),
        power_state=power_state,
        volumes=[attached(bdm) for bdm in spec.volumes],
        ports=[port(vif) for vif in spec.vifs],
        numa_topology=instance.numa_topology,
        pci_devices=[device.address for device in passed_through(instance)],
        local_disks={short_name(local.device_name): str(disks / local.name) for local in spec.local_disks},
        firmware=names_of(of_instance(instance)),
        data=habits.data,
        disk_rate=habits.disk_rate,
        memory_rate=habits.memory_rate,
    )
    if spec.rescue is not None:
        _boot_rescue_disk(guest, disks, is_stable=spec.rescue.image.is_stable)
    return guest


def _boot_rescue_disk(guest: Guest, disks: Path, *, is_stable: bool) -> None:
    own, guest.is_rescued = guest.root_disk, True
    first = guest.root_device
    taken = {*guest.devices(), first}
    free = next(name for name in (f"vd{letter}" for letter in ascii_lowercase) if name not in taken)
    guest.root_disk, guest.root_device = str(disks / RESCUE_DISK), free if is_stable else first
    if own is not None:
        guest.local_disks[first if is_stable else free] = own


def attached(bdm: BlockDevice) -> AttachedVolume:
    return AttachedVolume(
        bdm.volume_id, short_name(bdm.device_name or ""), str(volume.device_path(bdm.connection_info))
    )


def port(vif: Vif) -> Port:
    return Port(vif.id, vif.address, vif.fixed_ips[0].address if vif.fixed_ips else None, vif.profile.get("pci_slot"))


def short_name(device_name: str) -> str:
    """/dev/vdb -> vdb"""
    return device_name.removeprefix("/dev/")
