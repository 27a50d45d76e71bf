"""Makes simulated guests, starts and stops them, and destroys them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from causeway import durable
from causeway.errors import GuestFailed
from causeway.model import machine_type
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.states import PowerState
from causeway.virt import driver as virt
from causeway.virt.simulated import activity, disk, firmware
from causeway.virt.simulated.base import SimulatedBase
from causeway.virt.simulated.guest import Guest, define


class PowerDriver(SimulatedBase, ABC):
    """A part of `SimulatedDriver`."""

    @abstractmethod
    def discard_memory(self, uuid: str) -> None:
        """Deletes saved memory of the guest, if there is any."""

    def machine_type(self, instance: Instance) -> str:
        properties = instance.image_meta.properties if instance.image_meta is not None else {}
        return machine_type.recorded(instance.system_metadata) or str(properties.get("hw_machine_type") or "pc")

    def spawn(
        self, spec: virt.GuestSpec, *, vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None
    ) -> PowerState:
        uuid = spec.instance.uuid
        with self.files.locked(uuid):
            before = self.files.guests.get(uuid)
            if before is not None and before.power_state is PowerState.RUNNING:
                raise GuestFailed(f"Guest {uuid} is running already.", details=self.hostname)
            with self.files.restored_on_failure(uuid, before):
                if spec.root_disk is not None:
                    self._disk_maker.root(self.files.disks(uuid) / virt.ROOT_DISK, spec.root_disk)
                firmware.take(self.files.disks(uuid), spec)
                return self._define_and_boot(spec, vifs_plugged or virt.nothing_to_wait_for)

    def power_on(
        self,
        spec: virt.GuestSpec,
        *,
        vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None,  # noqa: ARG002 (its ports stay plugged)
    ) -> PowerState:
        uuid = spec.instance.uuid
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            self._refuse_leaving(guest)
            if guest is not None and guest.power_state is PowerState.RUNNING:
                return PowerState.RUNNING
            with self.files.restored_on_failure(uuid, guest):
                return self._define_and_boot(spec, virt.nothing_to_wait_for)

    def power_off(self, uuid: str, timeout: float) -> None:  # noqa: ARG002 (these guests obey at once)
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is not None and guest.power_state is not PowerState.SHUTDOWN:
                self._catch_up(guest)
                activity.stop(guest)
                guest.end_copies()
                guest.power_state, guest.going_to, guest.was = PowerState.SHUTDOWN, None, None
                self.files.save(guest)

    def reboot(
        self,
        spec: virt.GuestSpec,
        *,
        hard: bool,
        timeout: float,  # noqa: ARG002
        vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None,  # noqa: ARG002
    ) -> PowerState:
        uuid = spec.instance.uuid
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            self._refuse_leaving(guest)
            if hard:
                return self._define_and_boot(spec, virt.nothing_to_wait_for)
            if guest is None or guest.power_state is not PowerState.RUNNING:
                raise GuestFailed(f"Guest {uuid} does not run: only a hard reboot can start it.", details=self.hostname)
            self._catch_up(guest)
            self._boot(guest)
            return guest.power_state

    def pause(self, uuid: str) -> None:
        self._change_power(uuid, PowerState.PAUSED, before=PowerState.RUNNING)

    def unpause(self, uuid: str) -> None:
        self._record_double_start(uuid)
        self._change_power(uuid, PowerState.RUNNING, before=PowerState.PAUSED)

    def suspend(self, uuid: str) -> None:
        self._change_power(uuid, PowerState.SUSPENDED, before=PowerState.RUNNING)

    def resume(self, spec: virt.GuestSpec) -> PowerState:
        uuid = spec.instance.uuid
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if self.saved_memory(uuid) is not None:
                # It was suspended on another host, or a move of its memory was undone.
                self._record_double_start(uuid)
                self.wake(spec)
                self.resume_woken(uuid, is_paused=False)
                return PowerState.RUNNING
            if guest is None or guest.power_state is not PowerState.SUSPENDED:
                return self.power_on(spec)
            self._record_double_start(uuid)
            self._change_power(uuid, PowerState.RUNNING, before=PowerState.SUSPENDED)
            return PowerState.RUNNING

    def destroy(
        self,
        uuid: str,
        vifs: list[Vif],  # noqa: ARG002 (ports go with the definition)
        volumes: list[BlockDevice],
        *,
        destroy_disks: bool,
    ) -> None:
        self.tpm_keys.pop(uuid, None)
        for volume in volumes:
            self.volume_keys.pop(str(volume.volume_id), None)
        with self.files.locked(uuid):
            self.files.discard_incoming(uuid)
            self.files.undefine(uuid)
            if destroy_disks:
                self.files.delete_disks(uuid)

    def _change_power(self, uuid: str, becomes: PowerState, *, before: PowerState) -> None:
        """Raises `GuestFailed` if the guest's power state is neither of the two, or if the guest is being handed over."""
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            self._refuse_leaving(guest)
            if guest is None or guest.power_state not in (before, becomes):
                actual = guest.power_state.name.lower() if guest is not None else "not there"
                raise GuestFailed(f"Guest {uuid} can't become {becomes.name.lower()}: it is {actual}.")
            self._catch_up(guest)
            if guest.power_state is not becomes:
                guest.power_state = becomes
                if becomes is PowerState.RUNNING:
                    activity.resume(guest, self.link.clock.time())
                else:
                    activity.stop(guest)
            self.files.save(guest)

    def _define_and_boot(
        self, spec: virt.GuestSpec, vifs_plugged: Callable[[], AbstractContextManager[None]]
    ) -> PowerState:
        """Makes the definition and the disks that are missing; boots the guest if ``spec.power_on``."""
        uuid = spec.instance.uuid
        power_state = PowerState.PAUSED if spec.power_on else PowerState.SHUTDOWN
        self._require_keys(spec.volumes, spec.instance)
        guest = define(spec, self.hostname, self.files.disks(uuid), power_state, self.habits)
        if guest.root_disk is not None:
            disk.load(Path(guest.root_disk))
        durable.make_folder(self.files.disks(uuid))
        for local in spec.local_disks:
            self._disk_maker.local(self.files.disks(uuid) / local.name, local)
        if spec.config_drive:
            durable.write(self.files.disks(uuid) / "disk.config", msgspec.json.encode(spec.config_drive))
        if not spec.power_on:
            self.files.save(guest)
            return guest.power_state
        with vifs_plugged():
            self.files.save_before_boot(guest)
        self._boot(guest)
        return guest.power_state

    def _boot(self, guest: Guest) -> None:
        self._record_double_start(guest.uuid)
        # Saved memory does not match disks that a boot changes.
        self.discard_memory(guest.uuid)
        guest.power_state = PowerState.RUNNING
        firmware.boot(self.files.disks(guest.uuid), guest.firmware)
        self.files.append_to_console(guest.uuid, guest.boot())
        activity.boot(guest, self.link.clock.time())
        self.files.save(guest)
