"""`SimulatedDriver`: a host whose guests and disks are small files (`simulated.host_files` says which)."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import os_traits

from causeway.errors import GuestFailed
from causeway.model.states import PowerState
from causeway.virt import driver as virt
from causeway.virt.shared_disks.ownership import SharedDisks
from causeway.virt.simulated import disk, firmware, rounds
from causeway.virt.simulated.devices import DevicesDriver
from causeway.virt.simulated.hardware import SimulatedHardware, host_hardware
from causeway.virt.simulated.host_files import HostFiles
from causeway.virt.simulated.inside import InsideDriver
from causeway.virt.simulated.link import Link
from causeway.virt.simulated.live_transfer import LiveDriver
from causeway.virt.simulated.moved_disks import MovedDisksDriver
from causeway.virt.simulated.power import PowerDriver
from causeway.virt.simulated.saved_memory import SavedMemoryDriver
from causeway.virt.simulated.serial import SerialConsoles
from causeway.virt.simulated.shared_store import DiskMaker, open_store
from causeway.virt.simulated.volume_jobs import VolumeJobsDriver
from causeway.virt.simulated.watched import WatchedDriver


class SimulatedDriver(
    SavedMemoryDriver,
    LiveDriver,
    PowerDriver,
    MovedDisksDriver,
    DevicesDriver,
    InsideDriver,
    VolumeJobsDriver,
    WatchedDriver,
):
    """A host named ``hostname`` that keeps everything in ``state_dir``.

    ``peers_dir``: the directory that holds the state directories of all hosts. With it, the driver checks at each start of a
    guest whether another host runs that guest too. Like a real hypervisor it starts the guest all the same, but records it in
    ``double_starts``, which tests expect to be empty.

    ``live_network``: guests migrate live between hosts of the same network. ``console_address``: serial consoles listen there.
    ``shared_store``: a folder for the disks of its guests that other hosts have too.
    """

    def __init__(
        self,
        hostname: str,
        state_dir: Path,
        *,
        hardware: SimulatedHardware | None = None,
        peers_dir: Path | None = None,
        live_network: str = "",
        console_address: str = "127.0.0.1",
        shared_store: Path | None = None,
    ) -> None:
        super().__init__()
        self.hostname = hostname
        self.live_network = live_network
        self.double_starts: list[str] = []
        self.volume_keys: dict[str, str] = {}
        self.tpm_keys: dict[str, str] = {}
        self._hardware = hardware or SimulatedHardware()
        self._peers_dir = peers_dir
        self._state_dir = state_dir
        self._store = open_store(shared_store, hostname, peers_dir or state_dir.parent) if shared_store else None
        shared = SharedDisks(self._store, hostname) if self._store is not None else None
        self._disk_maker = DiskMaker(shared, self._store)
        self.files = HostFiles(hostname, state_dir, shared)
        self._serial = SerialConsoles(self.files, console_address)
        self.link = Link(self._hardware.clock, self._hardware.link_speed, self._hardware.link_latency)
        self.habits = self._hardware.habits
        self._rounds = rounds.Rounds(state_dir, self.link)
        self._began = time.monotonic()

    def start(self) -> None:
        self.link.stopping.clear()
        if self._store is not None:
            self._store.start()
        self.files.load()

    def close(self) -> None:
        self.link.stopping.set()
        self._serial.close()

    def host_facts(self) -> virt.HostFacts:
        return virt.HostFacts(
            hypervisor_hostname=self.hostname,
            hypervisor_type="simulated",
            hypervisor_version=1000000,
            vcpus=self._hardware.vcpus,
            memory_mb=self._hardware.memory_mb,
            local_gb=self._hardware.local_gb,
            cpu_info={
                "arch": "x86_64",
                "model": "simulated",
                "vendor": "Causeway",
                "topology": {"cells": 1, "sockets": 1, "cores": self._hardware.vcpus, "threads": 1},
                "features": [],
            },
            supported_instances=[["x86_64", "simulated", "hvm"]],
            # Whole days: what changes often would be written with every report.
            uptime=f"up {int(time.monotonic() - self._began) // 86400} days",
            traits=[
                os_traits.HW_ARCH_X86_64,
                os_traits.COMPUTE_FIRMWARE_BIOS,
                os_traits.COMPUTE_FIRMWARE_UEFI,
                os_traits.COMPUTE_IMAGE_TYPE_ISO,
                os_traits.COMPUTE_IMAGE_TYPE_QCOW2,
                os_traits.COMPUTE_IMAGE_TYPE_RAW,
                os_traits.COMPUTE_NET_ATTACH_INTERFACE,
                os_traits.COMPUTE_NET_VIF_MODEL_VIRTIO,
                os_traits.COMPUTE_RESCUE_BFV,
                os_traits.COMPUTE_SECURITY_TPM_1_2,
                os_traits.COMPUTE_SECURITY_TPM_2_0,
                os_traits.COMPUTE_SECURITY_TPM_CRB,
                os_traits.COMPUTE_SECURITY_TPM_SECRET_SECURITY_DEPLOYMENT,
                os_traits.COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER,
                os_traits.COMPUTE_SECURITY_TPM_TIS,
                os_traits.COMPUTE_SECURITY_UEFI_SECURE_BOOT,
                os_traits.COMPUTE_STORAGE_BUS_VIRTIO,
                os_traits.COMPUTE_VOLUME_MULTI_ATTACH,
            ],
        )

    def host_hardware(self) -> virt.HostHardware:
        return host_hardware(self._hardware)

    def list_guests(self) -> dict[str, PowerState]:
        return self.files.list_guests()

    def inspect(self, uuid: str) -> virt.GuestFacts:
        guest = self.files.guests.get(uuid)
        return virt.GuestFacts(
            uuid=uuid,
            power_state=guest.power_state if guest else None,
            vcpus=guest.vcpus if guest else 0,
            memory_mb=guest.memory_mb if guest else 0,
            has_disks=self.files.disks(uuid).is_dir(),
            has_stashed_disks=self.files.stash(uuid).is_dir(),
        )

    def own_folders(self) -> list[Path]:
        return [self.files.disks_dir]

    def list_disks(self) -> dict[str, bool]:
        return self.files.list_disks()

    def copy_faults(
        self, uuid: str, disks: list[virt.ExpectedDisk], volume_ids: list[str], *, stashed: bool = False
    ) -> list[str]:
        with self.files.locked(uuid):
            guest = None if stashed else self.files.guests.get(uuid)
            folder = self.files.stash(uuid) if stashed else self.files.disks(uuid)
            found = disk.faults(folder, disks) + firmware.faults(folder)
            if self.files.shared is not None:
                found += self.files.shared.faults(folder, {}, stashed=stashed)
        known = {attached.volume_id: attached.path for attached in guest.volumes} if guest is not None else {}
        for volume_id in volume_ids if guest is not None else ():
            if not Path(known.get(volume_id, "/dev/null")).is_file():
                found.append(f"volume {volume_id} is not connected to the guest")
        return found

    def disk_bytes(self, uuid: str) -> int | None:
        folder = self.files.disks(uuid)
        taken = virt.allocated_bytes(folder)
        with suppress(GuestFailed):
            if (folder / virt.ROOT_DISK).is_symlink():
                return taken
            # One that is missing or damaged is reported by `copy_faults`.
            taken += disk.load(folder / virt.ROOT_DISK).data
        return taken

    def disk_room(self, *, over_commit: bool) -> int:
        room = self._hardware.local_gb << 30
        for folder in self.files.disks_dir.iterdir():
            for path in (path for path in folder.iterdir() if path.name.startswith("disk") and not path.is_symlink()):
                found = disk.decode(path.read_bytes())
                taken = path.stat().st_size + (found.data if found is not None else 0)
                room -= taken if over_commit or found is None else max(taken, found.header.size)
        return room
