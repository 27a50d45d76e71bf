"""Whose a shared disk is, and what each act of a move does to it.

Several hosts see the disk, so what a host *sees* says nothing: a host has what it *owns*. The owner (a host, and an epoch that
grows with each change) is written with the disk, and every host keeps, in its own folder of the guest, the epoch in which it
became the owner. Whoever starts a guest, or deletes, restores or hands over a disk, reads the owner first.

A move in the life of one disk, whose source is host ``a`` and whose target is host ``b``:

==============================  ===========  ===============  =======================================
act                             owner after  snapshots after  content
==============================  ===========  ===============  =======================================
`SharedDisks.make` at a         ``a 1``                       new
`put_aside` at a                ``a 1``      ``stash-a-1``    stays
`take` at b                     ``b 2``      ``stash-a-1``    stays
confirm: `release_stashed` at a ``b 2``                       stays
revert: `release` at b          ``- 2``      ``stash-a-1``    stays
revert: `put_back` at a         ``a 3``                       what it was when a put it aside
==============================  ===========  ===============  =======================================

A disk that is taken over from a dead host belongs to its new host *after* the former one (``b 2 after a 1``) until `settle`:
if the evacuation fails, `release` returns it. ``-``: nobody owns the disk, but somebody has put it aside. The last one that
releases a disk deletes it. So no act of a host deletes what another one runs from, or would restore: neither does a host that
was down while its server was evacuated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from causeway import durable
from causeway.errors import DiskInUse, DiskTransferFailed, GuestFailed
from causeway.model.shared_disk import NOBODY, Owner, SharedDisk, StoredDisk
from causeway.virt.shared_disks.store import SharedStore

#: the file in a guest's folder that says which of its disks are in the store
RECORD = "shared.json"
_STASH = "stash-"


def owner_of(stored: StoredDisk) -> Owner | None:
    """Returns None for a disk that was never finished. Raises `GuestFailed` if what is written there is no owner."""
    if stored.owner is None:
        return None
    owner = Owner.parse(stored.owner)
    if owner is None:
        raise GuestFailed(f"Disk {stored.name} has an owner that can't be read.", details=repr(stored.owner[:255]))
    return owner


def label_of(owner: Owner) -> str:
    """Returns the snapshot that keeps the disk for this owner while a move may come back."""
    return f"{_STASH}{owner.host}-{owner.epoch}"


@dataclass(frozen=True)
class Held:
    """What a guest's folder says of one of its disks. ``name``: in the store. ``stash``: the snapshot, if it was put aside.

    ``epoch``: in which this host became the owner; 0: not yet, since the guest is still arriving.
    """

    name: str
    epoch: int
    stash: str | None = None


_DECODER = msgspec.json.Decoder(dict[str, Held])


def name_of(folder: Path, name: str) -> str:
    """Returns the name in the store of a disk that is made for the guest with this folder."""
    return f"{folder.name}_{name}"


class SharedDisks:
    """The disks in ``store`` that guests of ``host`` have. A guest is named by the ``folder`` that it has on the host."""

    def __init__(self, store: SharedStore, host: str) -> None:
        self.store = store
        self.host = host

    def held(self, folder: Path) -> dict[str, Held]:
        """The disks in the store that this guest has: name of the disk -> what is recorded."""
        try:
            return durable.read(folder / RECORD, _DECODER.decode) or {}
        except durable.Torn as torn:
            raise GuestFailed(
                f"What guest {folder.name} has in shared storage can't be read.", details=str(torn)
            ) from None

    def make(self, folder: Path, name: str, create: Callable[[str], None]) -> str:
        """Has ``create`` make a new disk under the name that it is given. Returns the disk's name in the store.

        A disk of this guest that exists stays. A disk that has its name is complete and has an owner.
        """
        stored_name = name_of(folder, name)
        if self._is_there(folder, name):
            return stored_name
        partial = f"{stored_name}.partial"
        self.store.remove(partial)
        self._record(folder, name, Held(stored_name, 1))
        create(partial)
        self.store.set_owner(partial, str(Owner(self.host, 1)))
        self.store.rename(partial, stored_name)
        return stored_name

    def remake(self, folder: Path, name: str, create: Callable[[str], None]) -> str:
        """The same as `make`, in place of a disk of this guest that exists: nothing is in it that anybody needs."""
        held = self.held(folder).get(name)
        stored = self.store.find(held.name) if held is not None else None
        if held is not None and stored is not None and self._owns(stored, held):
            self.store.remove(held.name)
        return self.make(folder, name, create)

    def adopt(self, folder: Path, name: str, arriving: str) -> str:
        """Makes a disk that has arrived in the store this guest's. Adopted already: nothing happens. Returns its name there."""
        stored_name = name_of(folder, name)
        if self._is_there(folder, name):
            return stored_name
        self._record(folder, name, Held(stored_name, 1))
        self.store.set_owner(arriving, str(Owner(self.host, 1)))
        self.store.rename(arriving, stored_name)
        return stored_name

    def offered(self, folder: Path) -> dict[str, SharedDisk]:
        """The guest's disks as another host can take them over. Raises `GuestFailed` if they are not this host's."""
        offered = {}
        for name, held in self.held(folder).items():
            self._owned(held)
            offered[name] = SharedDisk(self.store.id, held.name, str(Owner(self.host, held.epoch)))
        return offered

    def reaches(self, *offered: SharedDisk) -> bool:
        """Whether this host really sees disks of another one in its own store, with the owners that the other one says."""
        return all(each.store == self.store.id and self._is_as_offered(each) for each in offered)

    def put_aside(self, folder: Path) -> None:
        """Keeps the present content of the disks for `put_back`, before another host takes them over. The guest is off."""
        for name, held in self.held(folder).items():
            stored = self.store.find(held.name)
            owner = Owner(self.host, held.epoch)
            if stored is None or not self._owns(stored, held):
                continue
            # Recorded first: a snapshot that no record names would never be deleted.
            self._record(folder, name, replace(held, stash=label_of(owner)))
            self.store.make_snapshot(held.name, label_of(owner))

    def take(self, folder: Path, name: str, offered: SharedDisk) -> None:
        """Makes a disk that another host has put aside this guest's, with the content that it was put aside with.

        Taken already: nothing happens. Raises `DiskTransferFailed` if it was not put aside, `GuestFailed` if somebody else has
        taken it.
        """
        stored = self.store.find(offered.name) if offered.store == self.store.id else None
        if stored is None:
            raise DiskTransferFailed(
                f"Disk {offered.name} is not in the storage of the target.",
                details=f"offered: {offered}; {self.store.id}",
            )
        held = self.held(folder).get(name)
        if held is not None and self._owns(stored, held):
            return
        label = _label(offered)
        if label not in stored.snapshots:
            raise DiskTransferFailed(
                f"The source has not put disk {offered.name} aside.", details=f"no snapshot {label}"
            )
        owner = owner_of(stored)
        if owner is None or (owner.host != NOBODY and stored.owner != offered.owner):
            raise GuestFailed(f"Disk {offered.name} belongs to another host by now.", details=f"owner {stored.owner}")
        _require_unused(stored)
        if owner.host == NOBODY:
            # A guest of an earlier attempt may have written to it.
            self.store.roll_back(offered.name, label)
        self._become_owner(folder, name, Held(offered.name, owner.epoch + 1))

    def await_guest(self, folder: Path, name: str, offered: SharedDisk) -> None:
        """Notes a disk whose guest is arriving live. It stays its source's until `settle`."""
        if not self.reaches(offered):
            raise DiskTransferFailed(
                f"Disk {offered.name} is not in the storage of the target.",
                details=f"offered: {offered}; {self.store.id}",
            )
        self._record(folder, name, Held(offered.name, 0))

    def _arrive(self, folder: Path) -> None:
        for name, held in self.held(folder).items():
            if held.epoch == 0:
                owner = owner_of(self._found(held))
                if owner is None:
                    raise GuestFailed(f"Disk {held.name} has no owner.")
                epoch = owner.epoch if owner.host == self.host else owner.epoch + 1
                # Recorded last: until then, whoever repeats this knows that the guest is only arriving.
                self.store.set_owner(held.name, str(Owner(self.host, epoch)))
                self._record(folder, name, Held(held.name, epoch))

    def take_over(self, folder: Path, name: str, dead_host: str) -> bool:
        """Makes the disk of a host that is dead this guest's, as it is. What still writes to it can't any more.

        Returns False if there is no such disk. Raises `GuestFailed` if it is neither that host's nor this one's.
        """
        stored_name = name_of(folder, name)
        stored = self.store.find(stored_name)
        if stored is None:
            return False
        owner, held = owner_of(stored), self.held(folder).get(name)
        if held is not None and self._owns(stored, held):
            return True
        # A host that failed to evacuate it may be dead, too, before it has returned the disk.
        former = owner if owner is None or owner.host == dead_host else Owner.parse(owner.former or "")
        if owner is None or former is None or former.host != dead_host:
            raise GuestFailed(
                f"Disk {stored_name} belongs to another host: it was not taken over.", details=f"owner {stored.owner}"
            )
        self.store.fence(self.store.users(stored_name))
        self._become_owner(folder, name, Held(stored_name, owner.epoch + 1), Owner(former.host, former.epoch))
        return True

    def settle(self, folder: Path) -> None:
        """Makes the disks that arrived live, or were taken over from a dead host, this host's for good.

        Raises `GuestFailed` if one of them is another host's: that one would delete it.
        """
        self._arrive(folder)
        for held in self.held(folder).values():
            owner = owner_of(self._owned(held))
            if owner is not None and owner.former is not None:
                self.store.set_owner(held.name, str(Owner(self.host, held.epoch)))

    def put_back(self, folder: Path) -> None:
        """Gives the disks that were put aside their former content and size, and makes them this host's again.

        Called when the target has no guest any more, or is dead: what still writes to the disks can't any more.
        """
        for name, held in self.held(folder).items():
            if held.stash is None:
                continue
            stored = self._found(held)
            owner = owner_of(stored)
            stash, is_ours = held.stash, owner == Owner(self.host, held.epoch)
            if stash in stored.snapshots and not is_ours:
                self.store.fence(self.store.users(held.name))
                self.store.roll_back(held.name, stash)
                held = replace(held, epoch=owner.epoch + 1 if owner is not None else held.epoch + 1)
                self._become_owner(folder, name, held)
            elif not is_ours:
                raise GuestFailed(
                    f"Disk {held.name} belongs to another host, and what it was is not kept any more.",
                    details=f"owner {stored.owner}",
                )
            self.store.delete_snapshot(held.name, stash)
            self._record(folder, name, replace(held, stash=None))

    def release(self, folder: Path) -> None:
        """Releases the guest's disks: deletes them, unless they are another host's, or another one has put them aside."""
        for held in self.held(folder).values():
            stored = self.store.find(held.name)
            if stored is None or not self._owns(stored, held):
                self._remove_unfinished(held)
            elif (owner := owner_of(stored)) is not None and owner.former is not None:
                self.store.set_owner(held.name, owner.former)
            elif _stashes(stored):
                self.store.set_owner(held.name, str(Owner(NOBODY, held.epoch)))
            else:
                self.store.remove(held.name)

    def release_stashed(self, folder: Path) -> None:
        """Releases the disks that were put aside. Deletes only what nobody has any more."""
        for held in self.held(folder).values():
            if held.stash is None:
                continue
            self.store.delete_snapshot(held.name, held.stash)
            # Others may have put it aside since, or run from it.
            stored = self.store.find(held.name)
            owner = owner_of(stored) if stored is not None else None
            if stored is None or owner is None or _stashes(stored):
                continue
            if owner.host == NOBODY or owner == Owner(self.host, held.epoch):
                self.store.remove(held.name)

    def listed(self) -> list[StoredDisk]:
        """All disks in the store, also those that were never finished."""
        found = (self.store.find(name) for name in self.store.names())
        return [stored for stored in found if stored is not None]

    def remove(self, stored_name: str) -> None:
        """Deletes a disk that belongs to no server any more. Raises `GuestFailed` if somebody has it open."""
        stored = self.store.find(stored_name)
        if stored is not None:
            _require_unused(stored)
            self.store.remove(stored_name)

    def require_owned(self, folder: Path) -> None:
        """Raises `GuestFailed` unless all disks of the guest are this host's, and nobody has them open. Before each start."""
        for held in self.held(folder).values():
            _require_unused(self._owned(held))

    def faults(self, folder: Path, sizes: dict[str, int], *, stashed: bool) -> list[str]:
        """What is wrong with the guest's disks in the store; see `HostMethods.copy_faults`. ``sizes``: least bytes by disk."""
        found = []
        for name, held in self.held(folder).items():
            stored = self.store.find(held.name)
            owner = Owner(self.host, held.epoch)
            if stored is None:
                found.append(f"disk {held.name} is not in the storage {self.store.id}")
            elif not self._owns(stored, held) and not stashed:
                found.append(f"disk {held.name} belongs to '{stored.owner}', not to '{owner}'")
            elif stashed and not self._owns(stored, held) and held.stash not in stored.snapshots:
                found.append(f"disk {held.name} has no snapshot {held.stash}: what it was is not kept any more")
            elif not stashed and stored.size < sizes.get(name, 0):
                found.append(f"disk {held.name} has {stored.size} bytes, fewer than {sizes[name]}")
        return found

    def _become_owner(self, folder: Path, name: str, held: Held, former: Owner | None = None) -> None:
        # Recorded first: an owner's disk that no folder names would never be deleted.
        self._record(folder, name, held)
        self.store.set_owner(held.name, str(Owner(self.host, held.epoch, str(former) if former is not None else None)))

    def _is_there(self, folder: Path, name: str) -> bool:
        """Whether this guest has the disk. Raises `GuestFailed` if another one has a disk of its name."""
        stored, held = self.store.find(name_of(folder, name)), self.held(folder).get(name)
        if stored is None:
            return False
        if held is None or not self._owns(stored, held):
            raise GuestFailed(
                f"Disk {stored.name} exists already, and is not this guest's.",
                details=f"its owner: {stored.owner}; host {self.host}; run `causeway audit` to see what it is",
            )
        return True

    def _owns(self, stored: StoredDisk, held: Held) -> bool:
        return owner_of(stored) == Owner(self.host, held.epoch)

    def _record(self, folder: Path, name: str, held: Held) -> None:
        durable.make_folder(folder)
        durable.write(folder / RECORD, msgspec.json.encode({**self.held(folder), name: held}))

    def _found(self, held: Held) -> StoredDisk:
        stored = self.store.find(held.name)
        if stored is None:
            raise GuestFailed(f"Disk {held.name} is not in shared storage.", details=self.store.id)
        return stored

    def _owned(self, held: Held) -> StoredDisk:
        stored = self._found(held)
        if not self._owns(stored, held):
            raise GuestFailed(
                f"Disk {held.name} belongs to another host by now.",
                details=f"owner '{stored.owner}', not '{Owner(self.host, held.epoch)}'",
            )
        return stored

    def _is_as_offered(self, offered: SharedDisk) -> bool:
        stored = self.store.find(offered.name)
        return stored is not None and stored.owner == offered.owner

    def _remove_unfinished(self, held: Held) -> None:
        partial = f"{held.name}.partial"
        if held.epoch == 1 and self.store.find(partial) is not None:
            self.store.remove(partial)


def _require_unused(stored: StoredDisk) -> None:
    if stored.users:
        raise DiskInUse(
            f"Disk {stored.name} is in use: a guest with it may still run elsewhere, and is not started twice.",
            details=f"it is open for {', '.join(stored.users)}",
        )


def _label(offered: SharedDisk) -> str:
    owner = Owner.parse(offered.owner)
    if owner is None:
        raise DiskTransferFailed(
            f"Disk {offered.name} was offered without an owner.", details=repr(offered.owner[:255])
        )
    return label_of(owner)


def _stashes(stored: StoredDisk) -> list[str]:
    return [label for label in stored.snapshots if label.startswith(_STASH)]
