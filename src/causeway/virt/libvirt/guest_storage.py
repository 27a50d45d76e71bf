"""The part of the libvirt driver for disks in storage that several hosts reach."""

from __future__ import annotations

from abc import ABC
from contextlib import nullcontext
from pathlib import Path

from causeway.model.instance import Instance
from causeway.model.shared_disk import SharedDisk, StoredDisk
from causeway.model.states import PowerState
from causeway.virt.driver import Driver, StoredImage
from causeway.virt.libvirt import power
from causeway.virt.libvirt.agent import Agent
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.storage.disks import InstanceDisks


class GuestStorage(Driver, ABC):
    """A part of `LibvirtDriver`, which sets the attributes."""

    _connection: Connection
    _disks: InstanceDisks
    _instances_dir: Path

    def storage(self) -> str | None:
        return self._disks.storage()

    def stored_image(self, location: str) -> StoredImage | None:
        return self._disks.stored_image(location)

    def stores_images(self) -> bool:
        return self._disks.copies_itself

    def store_image(self, instance: Instance, name: str, image_id: str, beside: str) -> StoredImage | None:
        runs = power.state(self._connection, instance.uuid) is PowerState.RUNNING
        still = Agent(self._connection, self._instances_dir).still(instance) if runs else nullcontext()
        return self._disks.store_image(instance.uuid, name, image_id, beside, still)

    def delete_stored_image(self, image_id: str, beside: str) -> None:
        self._disks.delete_stored_image(image_id, beside)

    def shared_disks(self, uuid: str) -> dict[str, SharedDisk]:
        return self._disks.offered(uuid)

    def reaches_disks(self, offered: dict[str, SharedDisk]) -> bool:
        return self._disks.reaches(offered)

    def list_storage(self) -> list[StoredDisk]:
        return self._disks.list_storage()

    def remove_from_storage(self, name: str) -> None:
        self._disks.remove_from_storage(name)

    def settle_disks(self, uuid: str) -> None:
        self._disks.settle(uuid)

    def take_over_disks(self, uuid: str, names: list[str], dead_host: str) -> list[str]:
        return self._disks.take_over(uuid, names, dead_host)
