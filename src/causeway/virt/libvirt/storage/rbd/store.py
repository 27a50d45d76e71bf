"""A pool of Ceph as a store of disks: an RBD image for each, with its owner in the image's metadata.

Every call may be repeated. A call that was killed half way leaves an image that is listed and can't be opened: whoever makes or
removes an image of that name deletes it first.
"""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from causeway.errors import DiskInUse, GuestFailed, Misconfigured, StorageUnreachable
from causeway.model.shared_disk import StoredDisk
from causeway.virt.libvirt.storage.rbd import protocol
from causeway.virt.libvirt.storage.rbd.client import Limits, RbdClient
from causeway.virt.libvirt.storage.rbd.protocol import Access, Image, Parent, Refused

#: The image's metadata that says the image's id, and whose it is: a clone has its parent's metadata, and is nobody's yet.
OWNER = "causeway.owner"
#: names of base images, which are no disks
BASE = "base_"
#: the snapshot that clones stand on, of base images here and of the image service's
BASE_SNAPSHOT = "snap"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,200}")
_LOOK_EVERY = 0.5
_CONF, _USER = "/etc/ceph/ceph.conf", "admin"
# Seconds: a cluster that recovers answers slowly, and one that is dead not at all.
_REQUEST_TIMEOUT = 30


class RbdStore:
    """See `SharedStore`. ``busy_timeout``: seconds that `remove` waits for whoever has an image open; a killed guest has it 30.

    ``fence_seconds``: how long those who are fenced stay so. It is this one connection of theirs: a new one has another address.
    """

    def __init__(self, client: RbdClient, *, fence_seconds: float = 30 * 86400.0, busy_timeout: float = 45.0) -> None:
        self.client = client
        self._fence_seconds = fence_seconds
        self._busy_timeout = busy_timeout

    @classmethod
    def at(
        cls, pool: str, *, conf: str = "", user: str = "", connect_timeout: int = 5, disk_timeout: float = 3600.0
    ) -> RbdStore:
        """The store that options name. Empty: Ceph's own defaults. ``disk_timeout``: seconds for work on a whole disk."""
        access = Access(conf or _CONF, user or _USER, pool, connect_timeout, _REQUEST_TIMEOUT)
        return cls(RbdClient(access, Limits.of(access, disk_timeout)))

    def of_pool(self, pool: str, disk_timeout: float) -> RbdStore:
        """Another pool of the cluster, reached with the same account."""
        access = msgspec.structs.replace(self.client.access, pool=pool)
        return RbdStore(RbdClient(access, Limits.of(access, disk_timeout)), busy_timeout=self._busy_timeout)

    def close(self) -> None:
        """Ends the workers, and what waits for other hosts. Nothing is asked afterwards."""
        self.client.close()

    @property
    def id(self) -> str:
        return f"rbd:{self.client.fsid}/{self.client.access.pool}"

    def find(self, name: str) -> StoredDisk | None:
        image = self.image(name)
        if image is None:
            return None
        labels = sorted(label for label in image.snapshots if label != BASE_SNAPSHOT)
        return StoredDisk(name, image.size, _owner(image), tuple(labels), tuple(image.watchers))

    def names(self) -> list[str]:
        found: list[str] = self.ask(protocol.Names(), list[str])
        return sorted(name for name in found if not name.startswith(BASE))

    def set_owner(self, name: str, owner: str) -> None:
        self.ask(protocol.SetMetadata(name, OWNER, f"{self.existing(name).id} {owner}"))

    def make_snapshot(self, name: str, label: str) -> None:
        self.ask(protocol.MakeSnapshot(checked(name), checked(label)), accept=(errno.EEXIST,))

    def changes(self, name: str, since: str | None, until: str | None) -> list[tuple[int, int]] | None:
        """(offset, length) of what a disk has written between two snapshots, in whole blocks. None: there is no such snapshot.

        ``since`` None: of all that it has. ``until`` None: until now; nobody writes to it.
        """
        labels = [checked(label) if label is not None else None for label in (since, until)]
        found: list[tuple[int, int]] | None = self.ask(
            protocol.Changes(checked(name), *labels), list[tuple[int, int]], accept=(errno.ENOENT,)
        )
        return found

    def roll_back(self, name: str, label: str) -> None:
        if checked(label) not in self.existing(name).snapshots:
            raise GuestFailed(f"Disk {name} has no snapshot {label}.")
        self.ask(protocol.RollBack(name, label))

    def delete_snapshot(self, name: str, label: str) -> None:
        self.ask(protocol.DeleteSnapshot(checked(name), checked(label)), accept=(errno.ENOENT,))

    def rename(self, name: str, to: str) -> None:
        try:
            self.ask(protocol.Rename(checked(name), checked(to)))
        except GuestFailed:
            if self.image(name) is not None or self.image(to) is None:
                raise

    def remove(self, name: str) -> None:
        """Deletes a disk with its snapshots.

        Other images may stand on one of these. Then the disk goes to the pool's trash, where it stays until they are flattened or
        deleted, and the trash is purged (``rbd trash purge``, or its schedule).
        """
        end = time.monotonic() + self._busy_timeout
        while not self._removed(checked(name)):
            self._look_again(end, f"Disk {name} is in use: it is not deleted.", lambda: self._watchers(name))

    def _removed(self, name: str) -> bool:
        image = self.image(name)
        if image is not None:
            if image.watchers:
                return False
            left = image.kept + sum(not self._is_deleted(name, snapshot) for snapshot in image.snapshots)
            # The trash takes an image even from a guest that has it open, so who has is looked at again.
            if left and not self._watchers(name):
                self.ask(protocol.MoveToTrash(name), accept=(errno.ENOENT,))
                return True
        try:
            # Of an image that was made or deleted half way, too.
            self.client.ask(protocol.Remove(name), None)
        except Refused as refused:
            if refused.number == errno.ENOENT:
                return True
            if refused.number not in (errno.EBUSY, errno.ENOTEMPTY):
                self.fail(refused, name)
            return False
        return True

    def _is_deleted(self, name: str, snapshot: str) -> bool:
        try:
            self.client.ask(protocol.DeleteSnapshot(name, snapshot), None)
        except Refused as refused:
            # A protected one, on which images stand.
            if refused.number != errno.EBUSY:
                return refused.number == errno.ENOENT or self.fail(refused, name)
            return False
        found = self.image(name)
        return found is None or not found.kept

    def users(self, name: str) -> list[str]:
        return self.existing(name).watchers

    def fence(self, users: Sequence[str]) -> None:
        if users:
            self.ask(protocol.Blocklist(list(users), self._fence_seconds))

    def used_and_total(self) -> tuple[int, int]:
        """Bytes of the pool that are used, and that there are, as guests see them: copies that Ceph keeps are not counted."""
        usage: protocol.Usage = self.ask(protocol.Use(), protocol.Usage)
        return usage.used, usage.total

    def monitors(self) -> list[str]:
        """Where the monitors of now listen, as ``ADDRESS:PORT``."""
        found: list[str] = self.ask(protocol.Monitors(), list[str])
        return found

    def create(self, name: str, size: int) -> None:
        """Makes a blank disk. One of that size that is there stays."""
        self._make(protocol.Create(checked(name), size), None)

    def clone(self, base: str, snapshot: str, name: str) -> None:
        """Makes a disk that stands on a snapshot of another one of the pool. Such a disk that is there stays."""
        self.clone_from_other_pool(self.client.access.pool, base, snapshot, name)

    def clone_from_other_pool(self, pool: str, image: str, snapshot: str, name: str) -> None:
        """The same, of an image in another pool of the cluster: the image service's. Its content must be raw."""
        parent = Parent(*map(checked, (pool, image, snapshot)))
        self._make(protocol.Clone(parent, checked(name)), parent)

    def grow(self, name: str, size: int) -> None:
        """Makes a disk larger, to ``size`` bytes. A disk that is as large, or larger, stays."""
        self.ask(protocol.Grow(checked(name), size))

    def flatten(self, name: str) -> None:
        """Copies what a disk has of the image that it stands on, so that it stands alone. Nothing happens if it does."""
        if self.existing(name).parent is not None:
            self.ask(protocol.Flatten(name))

    def image(self, name: str) -> Image | None:
        """All that is known of an image. Returns None if there is none."""
        try:
            found: Image = self.client.ask(protocol.Describe(checked(name)), Image)
        except Refused as refused:
            if refused.number != errno.ENOENT:
                self.fail(refused, name)
            return None
        return found

    def existing(self, name: str) -> Image:
        """The same. Raises `GuestFailed` if there is none."""
        image = self.image(name)
        if image is None:
            raise GuestFailed(f"Disk {name} is not in shared storage.", details=self.id)
        return image

    def _make(self, call: protocol.Create | protocol.Clone, parent: Parent | None) -> None:
        for last in (False, True):
            try:
                self.client.ask(call, None)
                return
            except Refused as refused:
                if refused.number != errno.EEXIST:
                    self.fail(refused, call.parent.image if isinstance(call, protocol.Clone) else call.name)
            found = self.image(call.name)
            if found is not None:
                if found.parent != parent or (isinstance(call, protocol.Create) and found.size != call.size):
                    raise GuestFailed(f"Disk {call.name} exists already, and is another one.", details=str(found))
                return
            # Its name is left of one that was made or deleted half way.
            if not last:
                self.remove(call.name)
        raise GuestFailed(f"Disk {call.name} can't be made: somebody else makes or deletes it.", details=self.id)

    def _watchers(self, name: str) -> list[str]:
        image = self.image(name)
        return [] if image is None else image.watchers

    def _look_again(self, end: float, failed: str, details: Any) -> None:
        """Waits a little. Raises `GuestFailed` when it is ``end``."""
        if time.monotonic() >= end or self.client.stopping.wait(_LOOK_EVERY):
            raise GuestFailed(failed, details=", ".join(details()))

    def ask(self, call: protocol.Call, answer: Any = None, accept: Sequence[int] = ()) -> Any:
        """Asks Ceph. A refusal with a number that is in ``accept`` is None, and others are raised as errors of ours."""
        try:
            return self.client.ask(call, answer)
        except Refused as refused:
            if refused.number in accept:
                return None
            self.fail(refused, getattr(call, "name", ""))

    def fail(self, refused: Refused, name: str) -> NoReturn:
        """Raises what a refusal means for a disk."""
        details = f"{self.client.access.pool}: {refused}"
        match refused.number:
            case errno.ENOENT:
                raise GuestFailed(f"Disk {name} is not in shared storage.", details=details) from None
            case errno.EEXIST:
                raise GuestFailed(f"Disk {name} exists already in shared storage.", details=details) from None
            case errno.EBUSY | errno.EROFS:
                # EROFS: somebody who has it open does not release its lock.
                raise DiskInUse(f"Disk {name} is in use.", details=details) from None
            case errno.ENOSPC | errno.EDQUOT:
                raise GuestFailed("Shared storage is full.", details=details) from None
            case errno.EACCES | errno.EPERM:
                details += f". Look at what client.{self.client.access.user} may do (`ceph auth get`)"
                raise Misconfigured("The host may not do this in shared storage.", details=details) from None
            case errno.EINVAL | errno.EOPNOTSUPP:
                raise GuestFailed("Shared storage refused what the host asked for.", details=details) from None
        raise StorageUnreachable("Shared storage failed.", details=details) from None


def _owner(image: Image) -> str | None:
    of_image, _, owner = image.metadata.get(OWNER, "").partition(" ")
    return owner if owner and of_image == image.id else None


def checked(name: str) -> str:
    """Raises `GuestFailed` unless this can be the name of a disk or a snapshot."""
    # It becomes a word of commands, and part of names that have options in them.
    if _NAME.fullmatch(name) is None:
        raise GuestFailed("A name of a disk in shared storage is not accepted.", details=repr(name[:255]))
    return name
