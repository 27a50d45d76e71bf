"""What a user does in a simulated guest, and what an observer of all hosts sees: for tests, benchmarks and simulated time."""

from __future__ import annotations

from abc import ABC

from causeway.errors import GuestFailed
from causeway.model.numa import InstanceNUMATopology
from causeway.model.states import PowerState
from causeway.virt.simulated import activity, firmware
from causeway.virt.simulated.base import SimulatedBase
from causeway.virt.simulated.guest import short_name


class WatchedDriver(SimulatedBase, ABC):
    """The part of `SimulatedDriver` that no compute service calls."""

    def guest_write(self, uuid: str, text: str, device: str | None = None) -> None:
        """A program in the running guest writes a line to the root disk, or to another device such as ``vdb``."""
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is None or guest.power_state is not PowerState.RUNNING:
                raise GuestFailed(f"Guest {uuid} does not run on {self.hostname}.")
            guest.write(short_name(device or guest.root_device), text)

    def guest_read(self, uuid: str, device: str | None = None) -> list[str]:
        """The lines on the root disk or another device, including the guest's own line of each boot (``boot=...``)."""
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is None:
                raise GuestFailed(f"There is no guest {uuid} on {self.hostname}.")
            return guest.read(short_name(device or guest.root_device))

    def guest_remember(self, uuid: str, text: str) -> None:
        """A program in the running guest keeps a line in memory. ``busy``: it changes memory all the time (`simulated.live`)."""
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is None or guest.power_state is not PowerState.RUNNING:
                raise GuestFailed(f"Guest {uuid} does not run on {self.hostname}.")
            guest.memory.append(text)
            self.files.save(guest)

    def guest_memory(self, uuid: str) -> list[str]:
        """The lines in the guest's memory; the first one is the guest's own, of its boot."""
        return list(self.files.guests[uuid].memory)

    def guest_written(self, uuid: str) -> int:
        """How often the guest has written to its disk by now. Raises `GuestFailed` if a write is missing on the disk."""
        with self.files.locked(uuid):
            guest = self.files.guests[uuid]
            self._catch_up(guest)
            found = activity.faults(guest)
            if found:
                raise GuestFailed(f"Guest {uuid} has lost what it wrote.", details="; ".join(found))
            return activity.writes(guest)

    def guest_stood_still(self, uuid: str) -> float | None:
        """For how many seconds the guest did not run before it ran here; None: nobody counted."""
        return self.files.guests[uuid].stood_still

    def guest_firmware(self, uuid: str) -> dict[str, list[str]]:
        """name of the file (``nvram``, ``tpm2.0``) -> its lines; each boot adds one."""
        with self.files.locked(uuid):
            return firmware.lines(self.files.disks(uuid), self.files.guests[uuid].firmware)

    def guest_keep(self, uuid: str, name: str, text: str) -> None:
        """A program in the running guest sets a variable of UEFI (``nvram``), or stores something in its TPM (``tpm2.0``)."""
        with self.files.locked(uuid):
            self._running(uuid)
            firmware.add(self.files.disks(uuid), name, text)

    def guest_hardware(self, uuid: str) -> tuple[InstanceNUMATopology | None, list[str]]:
        """The guest's NUMA topology, and the addresses of its PCI devices, including those that are ports."""
        guest = self.files.guests[uuid]
        of_ports = [port.pci_slot for port in guest.ports if port.pci_slot is not None]
        return guest.numa_topology, [*guest.pci_devices, *of_ports]

    def guest_disks(self, uuid: str) -> dict[str, int]:
        """device -> size in MiB of each local disk, as the guest sees it."""
        with self.files.locked(uuid):
            return self.files.guests[uuid].sizes()
