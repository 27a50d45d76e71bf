"""The part of the libvirt driver for volumes of guests: attach, detach, swap, snapshot."""

from __future__ import annotations

import logging
from abc import ABC
from pathlib import Path
from typing import Any

from causeway.errors import GuestFailed
from causeway.model import tpm_secrets
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.volume_keys import Passphrase
from causeway.virt.driver import Driver
from causeway.virt.driver.volume_jobs import CopyProgress
from causeway.virt.libvirt import devices, power
from causeway.virt.libvirt.agent import Agent
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.guest_xml.domain_xml import device_of_serial, disk_xml
from causeway.virt.libvirt.storage import volume_files
from causeway.virt.libvirt.storage.block_copies import BlockCopies, Sizes
from causeway.virt.libvirt.storage.volume_secrets import check_provider
from causeway.virt.libvirt.storage.volumes import Volumes
from causeway.virt.undo import undone_on_failure

LOG = logging.getLogger(__name__)


class GuestVolumes(Driver, ABC):
    """A part of `LibvirtDriver`, which sets the attributes."""

    _connection: Connection
    _copies: BlockCopies
    _detach_timeout: float
    _host_ip: str
    _instances_dir: Path
    _volumes: Volumes

    def volume_connector(self) -> dict[str, Any]:
        return self._volumes.connector_properties(self._host_ip)

    def check_volume_connectable(self, connection_info: dict[str, Any]) -> None:
        self._volumes.check(connection_info)

    def check_volume_provider(self, provider: str) -> None:
        check_provider(provider)

    def hold_volume_key(self, volume: BlockDevice, key: Passphrase) -> None:
        self._volumes.secrets.hold(str(volume.volume_id), key)

    def hold_tpm_key(self, instance: Instance, passphrase: str) -> None:
        key_id = tpm_secrets.key_of(instance.system_metadata)
        if key_id is not None:
            self._volumes.secrets.hold_tpm(instance.uuid, key_id, passphrase)

    def attach_volume(self, uuid: str, volume: BlockDevice) -> None:
        serial = str(volume.volume_id)
        with undone_on_failure() as undo:
            disk = self._volumes.connect(uuid, volume)
            undo.callback(self._volumes.disconnect, uuid, volume)
            devices.attach(self._connection, uuid, disk_xml(disk), lambda xml: device_of_serial(xml, serial))

    def detach_volume(self, uuid: str, volume: BlockDevice) -> None:
        serial = str(volume.volume_id)
        devices.detach(
            self._connection,
            uuid,
            lambda xml: device_of_serial(xml, serial),
            what=f"volume {serial}",
            timeout=self._detach_timeout,
        )
        self._volumes.disconnect(uuid, volume)

    def extend_volume(self, uuid: str, volume: BlockDevice, size: int) -> None:
        if volume.is_encrypted:
            raise GuestFailed(
                f"Volume {volume.volume_id} is encrypted: a running guest does not see that it is larger before it starts again."
            )
        found = self._volumes.size_in_ceph(volume)
        if found is None:
            raise GuestFailed(
                f"Volume {volume.volume_id} is not in Ceph: a running guest does not see that it is larger."
            )
        # QEMU resizes the image, too. It must not become smaller if it is extended again just now.
        devices.resize(self._connection, uuid, str(volume.volume_id), max(size, found))

    # swaps

    def copy_volume(self, uuid: str, old: BlockDevice, new: BlockDevice, progress: CopyProgress) -> None:
        if old.is_encrypted or new.is_encrypted:
            # As in Nova. What is in them is smaller than they are, so that they may not fit one another.
            raise GuestFailed("Encrypted volumes can't be swapped while a guest uses them: detach the volume first.")
        with undone_on_failure() as undo:
            disk = self._volumes.connect(uuid, new)
            undo.callback(self._volumes.disconnect, uuid, new)
            sizes = Sizes(self._volumes.size_in_ceph(old), self._volumes.size_in_ceph(new))
            self._copies.copy(uuid, str(old.volume_id), disk, progress, sizes)

    def switch_volume(self, uuid: str, old: BlockDevice, new: BlockDevice) -> bool:
        return self._copies.switch(uuid, str(old.volume_id), self._volumes.connect(uuid, new))

    def end_volume_swap(self, uuid: str, old: BlockDevice, new: BlockDevice, *, keep_new: bool) -> None:
        kept, released = (new, old) if keep_new else (old, new)
        self._copies.end(uuid, str(old.volume_id), self._volumes.connect(uuid, kept))
        self._volumes.disconnect(uuid, released)

    # snapshots

    def snapshot_volume(self, instance: Instance, volume: BlockDevice, new_file: str) -> bool:
        uuid, serial = instance.uuid, str(volume.volume_id)
        if volume.is_encrypted:
            LOG.warning("Volume %s is encrypted: no snapshot of it is made while its guest runs", serial)
            return False
        try:
            with Agent(self._connection, self._instances_dir).still(instance):
                volume_files.snapshot(self._connection, uuid, serial, new_file)
        except GuestFailed as failure:
            LOG.warning("The snapshot of volume %s may have failed: %s %s", serial, failure.message, failure.details)
        return volume_files.uses(self._connection, uuid, serial, new_file)

    def merge_volume_files(
        self,
        instance: Instance,
        volume: BlockDevice,
        merged: str | None,
        into: str | None,
        progress: CopyProgress,
    ) -> None:
        uuid = instance.uuid
        if into is None and power.state(self._connection, uuid) in (None, *power.OFF):
            volume_files.merge_off(self._volumes.connect(uuid, volume).path, merged)
            return
        volume_files.merge(self._connection, uuid, str(volume.volume_id), merged, into, progress)
