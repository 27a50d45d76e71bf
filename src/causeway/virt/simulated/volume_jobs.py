"""What simulated guests do when they are to go on on another volume (`causeway.virt.volume_jobs`)."""

from __future__ import annotations

from abc import ABC
from pathlib import Path

from causeway.errors import GuestFailed
from causeway.model.block_device import BlockDevice
from causeway.model.states import PowerState
from causeway.virt.driver import Driver
from causeway.virt.simulated import volume
from causeway.virt.simulated.guest import AttachedVolume, Guest
from causeway.virt.simulated.host_files import HostFiles
from causeway.virt.volume_jobs import CopyProgress

_ALIVE = (PowerState.RUNNING, PowerState.PAUSED)


class VolumeJobsDriver(Driver, ABC):
    """`SimulatedDriver` has what it is made of."""

    files: HostFiles

    def copy_volume(self, uuid: str, old: BlockDevice, new: BlockDevice, progress: CopyProgress) -> None:
        target = volume.device_path(new.connection_info)
        with self.files.locked(uuid):
            guest, attached = self._with_volume(uuid, old)
            if guest.power_state not in _ALIVE:
                raise GuestFailed(f"Guest {uuid} does not run: no volume of it can be swapped.")
            size = Path(attached.path).stat().st_size
            if attached.copy != str(target):
                volume.copy(Path(attached.path), target)
                attached.copy = str(target)
                self.files.save(guest)
        try:
            progress(size, size)
        except BaseException:
            self.end_volume_swap(uuid, old, new, keep_new=False)
            raise

    def switch_volume(self, uuid: str, old: BlockDevice, new: BlockDevice) -> bool:
        target = str(volume.device_path(new.connection_info))
        with self.files.locked(uuid):
            guest, attached = self._with_volume(uuid, old)
            if attached.path != target and attached.copy != target:
                return False
            attached.path, attached.copy = target, None
            self.files.save(guest)
            return True

    def end_volume_swap(self, uuid: str, old: BlockDevice, new: BlockDevice, *, keep_new: bool) -> None:
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            attached = None if guest is None else guest.volume(old.volume_id)
            if guest is None or attached is None:
                return
            kept = new if keep_new else old
            if guest.power_state in _ALIVE and attached.path != str(volume.device_path(kept.connection_info)):
                raise GuestFailed(f"Guest {uuid} uses {attached.path}: it stays connected.")
            attached.copy = None
            self.files.save(guest)

    def _with_volume(self, uuid: str, wanted: BlockDevice) -> tuple[Guest, AttachedVolume]:
        guest = self.files.guests.get(uuid)
        attached = None if guest is None else guest.volume(wanted.volume_id)
        if guest is None or attached is None:
            raise GuestFailed(f"Guest {uuid} has no volume {wanted.volume_id}.")
        return guest, attached
