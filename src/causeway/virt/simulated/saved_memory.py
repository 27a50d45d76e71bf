"""Memory of simulated guests in files: a guest is saved at one host and woken at another.

The file ``memory`` is in the folder of the guest's disks, and is stashed with them. A guest that was suspended on another host
has the file until it is resumed.
"""

from __future__ import annotations

import shutil
from abc import ABC
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from causeway import durable
from causeway.errors import GuestFailed
from causeway.model.states import PowerState
from causeway.virt import driver as virt
from causeway.virt.live_guest import LiveSource
from causeway.virt.simulated import activity
from causeway.virt.simulated.base import SimulatedBase
from causeway.virt.simulated.guest import define

_LIVING = (PowerState.RUNNING, PowerState.PAUSED)
_WITH_MEMORY = (*_LIVING, PowerState.SUSPENDED)


class SavedMemoryDriver(SimulatedBase, ABC):
    """A part of `SimulatedDriver`."""

    supports_saved_memory = True
    supports_suspended_moves = True

    def check_can_wake(self, source: LiveSource) -> None:
        self.check_live_target(source)

    def save_memory(self, uuid: str) -> None:
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            is_off = guest is None or guest.power_state not in _WITH_MEMORY
            if is_off and (self.saved_memory(uuid) or self.saved_memory(uuid, stashed=True)):
                return
            if guest is None or guest.going_to is not None or is_off:
                raise GuestFailed(
                    f"Guest {uuid} neither runs nor stands still: it has no memory.", details=self.hostname
                )
            guest.refuse_devices_of_host()
            activity.catch_up(guest, self.link.clock.time())
            activity.stop(guest)
            durable.write(self.files.disks(uuid) / virt.MEMORY, msgspec.json.encode(guest.memory))
            guest.power_state, guest.memory = PowerState.SHUTDOWN, []
            self.files.save(guest)
        # The other host needs it before the guest can be resumed there.
        with self.link.transfer() as transfer:
            transfer.take(guest.memory_mb << 20)

    def saved_memory(self, uuid: str, *, stashed: bool = False) -> Path | None:
        path = (self.files.stash(uuid) if stashed else self.files.disks(uuid)) / virt.MEMORY
        return path if path.exists() else None

    def wake(
        self, spec: virt.GuestSpec, *, vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None
    ) -> None:
        uuid = spec.instance.uuid
        with self.files.locked(uuid):
            before, folder = self.files.guests.get(uuid), self.files.disks(uuid)
            if before is not None and before.power_state is PowerState.PAUSED and before.going_to is None:
                return
            if before is not None and before.power_state in _LIVING:
                raise GuestFailed(f"Guest {uuid} runs already.", details=self.hostname)
            with self.files.restored_on_failure(uuid, before):
                self._put_in_place(spec)
                self._require_keys(spec.volumes, spec.instance)
                guest = define(spec, self.hostname, folder, PowerState.PAUSED, self.habits)
                guest.refuse_devices_of_host()
                try:
                    guest.memory = msgspec.json.decode((folder / virt.MEMORY).read_bytes(), type=list[str])
                except (FileNotFoundError, msgspec.MsgspecError) as failure:
                    raise GuestFailed(f"The memory of guest {uuid} can't be read.", details=str(failure)) from failure
                with (vifs_plugged or virt.nothing_to_wait_for)():
                    self.files.save(guest)

    def define_suspended(self, spec: virt.GuestSpec) -> None:
        uuid = spec.instance.uuid
        with self.files.locked(uuid):
            before, folder = self.files.guests.get(uuid), self.files.disks(uuid)
            if before is not None and before.power_state in _WITH_MEMORY:
                raise GuestFailed(f"Guest {uuid} lives here already.", details=self.hostname)
            with self.files.restored_on_failure(uuid, before):
                self._put_in_place(spec)
                if self.saved_memory(uuid) is None:
                    raise GuestFailed(f"The memory of guest {uuid} is not here.", details=self.hostname)
                self.files.save(define(spec, self.hostname, folder, PowerState.SHUTDOWN, self.habits))

    def _put_in_place(self, spec: virt.GuestSpec) -> None:
        """Puts disks and memory in their places, the memory last: where it is, everything else is too."""
        folder = self.files.disks(spec.instance.uuid)
        self.adopt_disks(spec)
        if spec.config_drive:
            durable.write(folder / "disk.config", msgspec.json.encode(spec.config_drive))
        if spec.memory is not None:
            shutil.copyfile(spec.memory, folder / "memory.received")
            durable.settle(folder / "memory.received", folder / virt.MEMORY)

    def resume_woken(self, uuid: str, *, is_paused: bool) -> None:
        with self.files.locked(uuid):
            self.discard_memory(uuid)
            if not is_paused:
                self.unpause(uuid)

    def discard_memory(self, uuid: str) -> None:
        """Deletes saved memory of the guest, if there is any. Called before the guest is resumed or boots."""
        if (self.files.disks(uuid) / virt.MEMORY).exists():
            durable.delete(self.files.disks(uuid) / virt.MEMORY)
