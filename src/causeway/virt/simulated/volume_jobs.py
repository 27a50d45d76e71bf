"""Switches simulated guests to other volumes (`causeway.virt.driver.volume_jobs`)."""

from __future__ import annotations

from abc import ABC
from pathlib import Path

from causeway.errors import GuestFailed
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.states import PowerState
from causeway.virt.driver.volume_jobs import CopyProgress
from causeway.virt.simulated import volume as volumes
from causeway.virt.simulated.base import SimulatedBase
from causeway.virt.simulated.guest import AttachedVolume, Guest
from causeway.virt.undo import undone_on_failure

_ALIVE = (PowerState.RUNNING, PowerState.PAUSED)


class VolumeJobsDriver(SimulatedBase, ABC):
    """A part of `SimulatedDriver`."""

    def copy_volume(self, uuid: str, old: BlockDevice, new: BlockDevice, progress: CopyProgress) -> None:
        target = volumes.device_path(new.connection_info)
        with self.files.locked(uuid):
            guest, attached = self._with_volume(uuid, old)
            if guest.power_state not in _ALIVE:
                raise GuestFailed(f"Guest {uuid} does not run: no volume of it can be swapped.")
            size = Path(attached.path).stat().st_size
            if attached.copy != str(target):
                volumes.copy(Path(attached.path), target)
                attached.copy = str(target)
                self.files.save(guest)
        with undone_on_failure() as undo:
            undo.callback(self.end_volume_swap, uuid, old, new, keep_new=False)
            progress(size, size)

    def switch_volume(self, uuid: str, old: BlockDevice, new: BlockDevice) -> bool:
        target = str(volumes.device_path(new.connection_info))
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
            if guest.power_state in _ALIVE and attached.path != str(volumes.device_path(kept.connection_info)):
                raise GuestFailed(f"Guest {uuid} uses {attached.path}: it stays connected.")
            attached.copy = None
            self.files.save(guest)

    def snapshot_volume(self, instance: Instance, volume: BlockDevice, new_file: str) -> bool:
        """Simulated guests know no chains of files, so the new file gets everything that the volume has."""
        with self.files.locked(instance.uuid):
            guest, attached = self._with_volume(instance.uuid, volume)
            there = Path(attached.path)
            new = there.with_name(new_file)
            if there == new or guest.power_state not in _ALIVE:
                return True
            if not new.is_file():
                return False
            with new.open("r+b") as file:
                file.truncate(there.stat().st_size)
            volumes.copy(there, new)
            attached.path = str(new)
            self.files.save(guest)
            return True

    def merge_volume_files(
        self,
        instance: Instance,
        volume: BlockDevice,
        merged: str | None,  # noqa: ARG002
        into: str | None,  # noqa: ARG002
        progress: CopyProgress,
    ) -> None:
        with self.files.locked(instance.uuid):
            _guest, attached = self._with_volume(instance.uuid, volume)
            size = Path(attached.path).stat().st_size
        progress(size, size)

    def _with_volume(self, uuid: str, wanted: BlockDevice) -> tuple[Guest, AttachedVolume]:
        """Raises `GuestFailed` if the guest does not have the volume."""
        guest = self.files.guests.get(uuid)
        attached = None if guest is None else guest.volume(wanted.volume_id)
        if guest is None or attached is None:
            raise GuestFailed(f"Guest {uuid} has no volume {wanted.volume_id}.")
        return guest, attached
