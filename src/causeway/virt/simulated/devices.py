"""Volumes and ports of simulated guests."""

from __future__ import annotations

import uuid as uuids
from abc import ABC
from typing import Any

from causeway.errors import ClaimRefused, DecryptionRefused, GuestFailed
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.states import PowerState
from causeway.model.volume_keys import Passphrase
from causeway.virt.simulated import volume as volumes
from causeway.virt.simulated.base import SimulatedBase
from causeway.virt.simulated.guest import attached, port


class DevicesDriver(SimulatedBase, ABC):
    """A part of `SimulatedDriver`."""

    supports_live_port_devices = True

    def volume_connector(self) -> dict[str, Any]:
        return {
            "host": self.hostname,
            "ip": "127.0.0.1",
            "initiator": f"iqn.2026-01.causeway:{self.hostname}",
            "multipath": False,
            "platform": "x86_64",
            "os_type": "linux",
        }

    def check_volume_connectable(self, connection_info: dict[str, Any]) -> None:
        try:
            volumes.device_path(connection_info)
        except GuestFailed as error:
            raise ClaimRefused(error.message, details=f"{self.hostname}: {error.details}") from error

    def check_volume_provider(self, provider: str) -> None:
        if provider != "luks":
            raise DecryptionRefused(f"Guests here can't have volumes of the encryption provider '{provider}'.")

    def hold_volume_key(self, volume: BlockDevice, key: Passphrase) -> None:
        self.check_volume_provider(key.provider)
        self.volume_keys[str(volume.volume_id)] = key.text

    def hold_tpm_key(self, instance: Instance, passphrase: str) -> None:
        self.tpm_keys[instance.uuid] = passphrase

    def attach_volume(self, uuid: str, volume: BlockDevice) -> None:
        self._require_keys([volume])
        new = attached(volume)
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is None or new in guest.volumes:
                return
            for other in guest.volumes:
                if other.volume_id == new.volume_id:
                    raise GuestFailed(f"Volume {new.volume_id} is attached to guest {uuid} as {other.device} already.")
            if new.device in guest.devices():
                raise GuestFailed(f"Guest {uuid} has a disk {new.device} already.", details=self.hostname)
            guest.volumes.append(new)
            self.files.save(guest)
            if guest.power_state is PowerState.RUNNING:
                guest.write(new.device, f"attached,id={uuids.uuid4().hex[:8]}")
                self.files.append_to_console(uuid, guest.marker(new.device) + "\n")

    def extend_volume(self, uuid: str, volume: BlockDevice, size: int) -> None:
        """Simulated guests don't look at sizes; that it was said is in their console."""
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is None or guest.power_state is not PowerState.RUNNING:
                return
            for each in guest.volumes:
                if each.volume_id == volume.volume_id:
                    self.files.append_to_console(uuid, f"{each.device}: {size} bytes\n")

    def detach_volume(self, uuid: str, volume: BlockDevice) -> None:
        self.volume_keys.pop(str(volume.volume_id), None)
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is not None:
                guest.volumes = [other for other in guest.volumes if other.volume_id != volume.volume_id]
                self.files.save(guest)

    def port_devices(self, uuid: str) -> list[str] | None:
        guest = self.files.guests.get(uuid)
        return None if guest is None else [port.mac for port in guest.ports if port.pci_slot is not None]

    def attach_interface(self, uuid: str, vif: Vif) -> None:
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is None:
                raise GuestFailed(f"There is no guest {uuid} to attach a port to.", details=self.hostname)
            new = port(vif)
            if new in guest.ports:
                return
            if any(other.id == new.id or other.mac == new.mac for other in guest.ports):
                raise GuestFailed(f"Guest {uuid} has a port {new.id} or one with its address {new.mac} already.")
            guest.ports.append(new)
            self.files.save(guest)

    def detach_interface(self, uuid: str, vif: Vif) -> None:
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is not None and guest.going_to is not None:
                raise GuestFailed(f"Guest {uuid} is being handed over: it keeps its ports.", details=self.hostname)
            if guest is not None:
                guest.ports = [other for other in guest.ports if other.id != vif.id]
                self.files.save(guest)
