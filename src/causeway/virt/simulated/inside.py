"""What users ask of a simulated guest: its consoles, its counters, a crash dump, a trim, a password, a rescue."""

from __future__ import annotations

from abc import ABC

from causeway import durable
from causeway.errors import GuestFailed
from causeway.model.console import ConsoleType
from causeway.model.diagnostics import CpuDiagnostics, Diagnostics, DiskDiagnostics, NicDiagnostics
from causeway.model.instance import Instance
from causeway.model.states import PowerState
from causeway.virt import driver as virt
from causeway.virt.simulated import agent, disk
from causeway.virt.simulated.base import SimulatedBase
from causeway.virt.simulated.host_files import CONSOLE
from causeway.virt.simulated.serial import SerialConsoles

# Bytes of the log that are shown.
_CONSOLE_LIMIT = 64 * 1024
_ON = (PowerState.RUNNING, PowerState.PAUSED)


class InsideDriver(SimulatedBase, ABC):
    """A part of `SimulatedDriver`."""

    _serial: SerialConsoles

    def console_output(self, uuid: str) -> bytes:
        try:
            return (self.files.disks(uuid) / CONSOLE).read_bytes()[-_CONSOLE_LIMIT:]
        except FileNotFoundError:
            return b""

    def console_listener(self, uuid: str, kind: ConsoleType) -> tuple[str, int]:
        if kind is not ConsoleType.SERIAL:
            return super().console_listener(uuid, kind)
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is None or guest.power_state not in _ON:
                raise GuestFailed(f"Guest {uuid} does not run.", details=self.hostname)
            return self._serial.address, self._serial.port_of(uuid)

    def diagnostics(self, uuid: str) -> Diagnostics:
        with self.files.locked(uuid):
            guest = self._running(uuid)
            return Diagnostics(
                # The API has no name for this driver.
                driver="libvirt",
                hypervisor="simulated",
                hypervisor_os="simulated",
                memory_maximum=guest.memory_mb,
                memory_used=guest.memory_mb,
                cpus=[CpuDiagnostics(number) for number in range(guest.vcpus)],
                nics=[NicDiagnostics(port.id, port.mac) for port in guest.ports],
                disks=[DiskDiagnostics(device) for device in guest.devices()],
            )

    def trigger_crash_dump(self, uuid: str) -> None:
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            self._refuse_leaving(guest)
            if guest is None or guest.power_state not in _ON:
                raise GuestFailed(f"Guest {uuid} is off: there is nothing to dump.", details=self.hostname)
            self.files.append_to_console(uuid, "CAUSEWAY-CRASH-DUMP\n")

    def trim_guest(self, instance: Instance) -> None:
        with self.files.locked(instance.uuid):
            guest = self._running(instance.uuid)
            self._refuse_leaving(guest)
            agent.check_there_is_one(guest, instance, "it can't be trimmed")
            self.files.append_to_console(instance.uuid, "CAUSEWAY-AGENT trimmed\n")

    def set_password(self, instance: Instance, user: str, password: str) -> None:
        with self.files.locked(instance.uuid):
            guest = self._running(instance.uuid)
            agent.set_password(self.files, guest, instance, user, password)

    # rescue

    def prepare_rescue(self, spec: virt.GuestSpec) -> None:
        uuid = spec.instance.uuid
        if spec.rescue is None or spec.rescue.base is None:
            raise GuestFailed(f"There is no image to rescue guest {uuid} with.", details=self.hostname)
        with self.files.locked(uuid):
            folder = self.files.disks(uuid)
            if not any(volume.is_root for volume in spec.volumes):
                disk.load(folder / virt.ROOT_DISK)
            durable.make_folder(folder)
            image = virt.RootDisk(base=spec.rescue.base, base_image_id=spec.rescue.image.image_id)
            disk.create(folder / virt.RESCUE_DISK, image)

    def has_rescue_disk(self, uuid: str) -> bool:
        return (self.files.disks(uuid) / virt.RESCUE_DISK).exists()

    def is_rescued(self, uuid: str) -> bool:
        guest = self.files.guests.get(uuid)
        return guest is not None and guest.is_rescued

    def delete_rescue_disk(self, uuid: str) -> None:
        with self.files.locked(uuid):
            if self.is_rescued(uuid):
                raise GuestFailed(f"Guest {uuid} uses its rescue disk: it is not deleted.", details=self.hostname)
            durable.delete(self.files.disks(uuid) / virt.RESCUE_DISK)
