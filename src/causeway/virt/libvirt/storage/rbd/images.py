"""Base images in the pool, and disks that come from files or become files.

A base image is in the pool once, whatever the number of hosts and servers, and always raw: a guest would boot from the bytes of a
qcow2 file as they are. It is made under another name, which the first host creates; others wait while that host has it open::

    base_ID.partial         somebody makes it. Nobody has it open for a while: its host is dead, and another one makes it anew
    base_ID.partial@snap    it is complete, and only has to be renamed
    base_ID@snap            disks are cloned from it
"""

from __future__ import annotations

import errno
import logging
import re
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from causeway.errors import CausewayError, GuestFailed, Misconfigured
from causeway.model.image import BOOTABLE_FORMATS, QCOW2, RAW
from causeway.virt import image_formats
from causeway.virt.driver import StoredImage
from causeway.virt.image_formats import FoundImage
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.nbd import NbdClient
from causeway.virt.libvirt.storage.nbd_server import served
from causeway.virt.libvirt.storage.rbd import protocol
from causeway.virt.libvirt.storage.rbd.protocol import Parent, Refused
from causeway.virt.libvirt.storage.rbd.store import BASE, BASE_SNAPSHOT, RbdStore, checked

LOG = logging.getLogger(__name__)

# Of the image service: rbd://CLUSTER/POOL/IMAGE/SNAPSHOT.
_LOCATION = re.compile(r"rbd://([0-9a-f-]{36})/([^/]+)/([^/]+)/([^/]+)")
# Enough for the header of every format.
_LOOKED_AT = 512 << 10
_SECTOR = 512
_LOOK_EVERY = 0.5


class RbdImages:
    """``timeout``: seconds for whatever reads or writes a whole disk. ``abandoned_after``: seconds; see `import_base`."""

    def __init__(self, store: RbdStore, timeout: float, *, abandoned_after: float = 20.0) -> None:
        self._store = store
        self._timeout = timeout
        self._abandoned_after = abandoned_after

    def at(self, location: str) -> StoredImage | None:
        """The image service's image at a location: see `SharedDiskMethods.stored_image`."""
        parent = self._parent_at(location)
        if parent is None:
            return None
        try:
            found: protocol.Beginning = self._store.client.ask(protocol.Read(parent, _LOOKED_AT), protocol.Beginning)
        except Refused as refused:
            LOG.info("This host can't make disks of the image at %s: %s", location, refused)
            return None
        if not image_formats.begins_raw(found.content):
            LOG.info("The image at %s is not raw", location)
            return None
        return StoredImage(location, found.size)

    def clone(self, image: StoredImage, name: str) -> None:
        """Makes a disk that stands on the image service's image."""
        parent = self._parent_at(image.location)
        if parent is None:
            raise GuestFailed("An image is not in the storage of the host.", details=image.location)
        self._store.clone_from_other_pool(parent.pool, parent.image, parent.snapshot, name)

    def store(self, name: str, snapshot: str, image_id: str, beside: str) -> StoredImage | None:
        """Makes an image of a disk's snapshot in the pool of the image at ``beside``: see `SharedDiskMethods.store_image`."""
        pool = self._pool_at(beside)
        if pool is None:
            return None
        own = self._store.client.access.pool
        try:
            try:
                pool.remove(image_id)
                pool.clone_from_other_pool(own, name, snapshot, image_id)
                pool.flatten(image_id)
                pool.ask(protocol.MakeSnapshot(image_id, BASE_SNAPSHOT, protected=True))
                size = pool.existing(image_id).size
            except BaseException:
                with suppress(CausewayError):
                    pool.remove(image_id)
                raise
            finally:
                pool.close()
        except (GuestFailed, Misconfigured) as failure:
            LOG.info("Image %s can't be made beside %s: %s %s", image_id, beside, failure.message, failure.details)
            return None
        location = f"rbd://{pool.client.fsid}/{pool.client.access.pool}/{image_id}/{BASE_SNAPSHOT}"
        return StoredImage(location, size)

    def delete_stored(self, image_id: str, beside: str) -> None:
        """Deletes what `store` made."""
        pool = self._pool_at(beside)
        if pool is not None:
            try:
                pool.remove(image_id)
            except Misconfigured as failure:
                # Who may not delete there has made nothing there.
                LOG.info("Image %s is not deleted beside %s: %s", image_id, beside, failure.details)
            finally:
                pool.close()

    def is_in_cluster(self, location: str) -> bool:
        return self._parent_at(location) is not None

    def _pool_at(self, location: str) -> RbdStore | None:
        parent = self._parent_at(location)
        return None if parent is None else self._store.of_pool(parent.pool, self._timeout)

    def _parent_at(self, location: str) -> Parent | None:
        """Another service wrote the location: nothing is asked of Ceph unless these are names."""
        found = _LOCATION.fullmatch(location)
        if found is None or found[1] != self._store.client.fsid:
            return None
        try:
            return Parent(*map(checked, found.groups()[1:]))
        except GuestFailed:
            return None

    def has_base(self, image_id: str) -> bool:
        image = self._store.image(_base(image_id))
        return image is not None and BASE_SNAPSHOT in image.snapshots

    def import_base(self, image_id: str, path: Path, disk_format: str) -> str:
        """Makes the base image of a checked file, unless it is there, or another host makes it: that is waited for.

        One that nobody has open for ``abandoned_after`` seconds is made anew. Returns its name.

        Raises `ImageRefused` if the file is not what it is said to be.
        """
        base, end = _base(image_id), time.monotonic() + self._timeout
        found = _inspected(path, disk_format, f"Image {image_id}", BOOTABLE_FORMATS)
        partial = f"{base}.partial"
        seen: tuple[str, float] | None = None
        while not self.has_base(image_id):
            made = self._begun(partial, found.virtual_size)
            if made is not None:
                if self._filled(path, found, partial, made):
                    self._complete(partial, base)
                continue
            now, image = time.monotonic(), self._store.image(partial)
            if image is None:
                # It was renamed meanwhile, or is left of one that was made or deleted half way.
                if not self.has_base(image_id):
                    self._store.remove(partial)
            elif BASE_SNAPSHOT in image.snapshots:
                self._complete(partial, base)
            elif image.watchers or seen is None or seen[0] != image.id:
                seen = (image.id, now)
            elif now - seen[1] >= self._abandoned_after:
                self._store.remove(partial)
            if now >= end or self._store.client.stopping.wait(_LOOK_EVERY):
                raise GuestFailed(
                    f"Image {image_id} is being put into shared storage by another host.", details=partial
                )
        return base

    def fill(self, path: Path, name: str) -> None:
        """Makes a disk of a qcow2 file of this host, with what the file stands on. It has no owner yet.

        A disk of that name without an owner was never finished, and is made anew.
        """
        self._store.remove(name)
        self._store.create(name, -(-qemu_img.virtual_size(path) // _SECTOR) * _SECTOR)
        self._fill(path, FoundImage(QCOW2, 0), name)

    def overwrite(self, path: Path, name: str) -> None:
        """Replaces the content of a disk, which nobody uses, by that of a qcow2 file of this host that is not larger."""
        self._fill(path, FoundImage(QCOW2, 0), name, is_blank=False)

    def export_disk(self, name: str, snapshot: str | None, path: Path) -> None:
        """Copies a disk, or what a snapshot keeps of it, to a qcow2 file that stands alone. A file that is there is replaced.

        Without a snapshot nobody may write to the disk meanwhile.
        """
        size = self._store.existing(name).size
        source = self._url(name if snapshot is None else f"{name}@{checked(snapshot)}")
        try:
            qemu_img.from_network(source, path, size, self._timeout)
        except GuestFailed:
            # Ceph may not answer: then this says so.
            self._store.existing(name)
            raise

    @contextmanager
    def opened(self, name: str, snapshot: str | None = None, *, writable: bool = False) -> Iterator[NbdClient]:
        """A client that reads or writes a disk block by block; it has the disk open as a guest has."""
        image = checked(name) if snapshot is None else f"{checked(name)}@{checked(snapshot)}"
        try:
            with served(self._url(image), RAW, writable=writable) as client:
                yield client
        except GuestFailed:
            # Ceph may not answer: then this says so.
            self._store.existing(name)
            raise

    def _begun(self, partial: str, size: int) -> str | None:
        """The id of the image that this host has begun. Returns None if there is one already."""
        try:
            self._store.client.ask(protocol.Create(partial, size), None)
        except Refused as refused:
            if refused.number != errno.EEXIST:
                self._store.fail(refused, partial)
            return None
        image = self._store.image(partial)
        return None if image is None else image.id

    def _filled(self, path: Path, found: FoundImage, partial: str, made: str) -> bool:
        """Whether the image is complete, and still the one that this host has begun."""
        try:
            self._fill(path, found, partial)
        except GuestFailed:
            if self._is(partial, made):
                # Nobody has to wait until it looks abandoned.
                self._store.remove(partial)
                raise
        return self._is(partial, made)

    def _is(self, partial: str, made: str) -> bool:
        image = self._store.image(partial)
        return image is not None and image.id == made

    def _complete(self, partial: str, base: str) -> None:
        """Names a base image, which another host may do at the same moment."""
        accept = (errno.ENOENT, errno.EEXIST)
        self._store.ask(protocol.MakeSnapshot(partial, BASE_SNAPSHOT, protected=True), accept=accept)
        self._store.ask(protocol.Rename(partial, base), accept=accept)

    def _fill(self, path: Path, found: FoundImage, name: str, *, is_blank: bool = True) -> None:
        try:
            qemu_img.to_network(path, found.disk_format, self._url(name), self._timeout, is_blank=is_blank)
        except GuestFailed:
            # Ceph may not answer: then this says so.
            self._store.existing(name)
            raise

    def _url(self, image: str) -> str:
        """How QEMU names an image, and how it reaches it."""
        access = self._store.client.access
        options = {
            "id": access.user,
            "conf": access.conf,
            "client_mount_timeout": access.connect_timeout,
            "rados_mon_op_timeout": access.connect_timeout,
            "rados_osd_op_timeout": access.request_timeout,
        }
        words = [f"rbd:{access.pool}/{image}", *(f"{key}={_escaped(str(value))}" for key, value in options.items())]
        return ":".join(words)


def _base(image_id: str) -> str:
    return checked(f"{BASE}{image_id}")


def _escaped(value: str) -> str:
    return "".join(f"\\{each}" if each in "\\:@=" else each for each in value)


def _inspected(path: Path, disk_format: str, what: str, allowed: Collection[str]) -> FoundImage:
    """What is in a file, with the size that its disk has: a whole number of sectors."""
    found = image_formats.inspect(path, disk_format, what, allowed)
    return FoundImage(found.disk_format, -(-found.virtual_size // _SECTOR) * _SECTOR)
