"""The part of the libvirt driver for copies of guests' disks, and for disks in storage that several hosts reach."""

from __future__ import annotations

from abc import ABC
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from causeway.errors import GuestFailed
from causeway.model.instance import Instance
from causeway.model.shared_disk import SharedDisk, StoredDisk
from causeway.model.states import PowerState
from causeway.virt.driver import DiskExport, Driver, StoredImage
from causeway.virt.libvirt import power
from causeway.virt.libvirt.agent import Agent
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.storage import backups
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

    # copies

    def export_disk(self, instance: Instance, name: str, *, flatten: bool) -> AbstractContextManager[DiskExport]:
        if power.state(self._connection, instance.uuid) is PowerState.RUNNING:
            raise GuestFailed(f"The disks of server {instance.uuid} can't be sent while its guest runs.")
        return self._disks.export(instance.uuid, name, image_ref=instance.image_ref, flatten=flatten)

    def export_running_disk(self, instance: Instance, name: str) -> AbstractContextManager[DiskExport]:
        uuid = instance.uuid
        still = Agent(self._connection, self._instances_dir).still(instance)
        if self._disks.copies_itself and name in self._disks.in_storage(uuid):
            if power.state(self._connection, uuid) is not PowerState.RUNNING:
                raise GuestFailed(f"The guest of server {uuid} does not run.")
            return self._disks.export_from_storage(uuid, name, still)

        def copy(disk: Path, target: Path) -> None:
            backups.copy_while_it_runs(self._connection, uuid, disk, target, self._disks.timeout, still)

        return self._disks.export_beside_guest(uuid, name, copy)
