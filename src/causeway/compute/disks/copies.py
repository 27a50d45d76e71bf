"""The target's side of warm moves: copies of disks that are put together while their guest runs elsewhere.

::

    COPIES/MOVE.SERVER/state.json      which rounds have arrived, and how many parts of the present one
    COPIES/MOVE.SERVER/NAME            the disk, or where the driver keeps it
    COPIES/MOVE.SERVER/NAME.digests    the digests of all blocks that arrived

A part is noted when the driver has flushed it. After a restart of its process the target asks for the next part; after one of its
machine it begins the round again, since only whole rounds are synced, and disks with the last changes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from causeway import durable, errors
from causeway.compute.disks import changes, folders
from causeway.compute.disks.foreign_names import checked
from causeway.faults import injector
from causeway.model.outcomes import OperationToken
from causeway.model.warm import CopiedDisk, CopyRound
from causeway.virt.driver import BaseImage, DiskCopy, Driver

_STATE, _DIGESTS = "state.json", ".digests"

#: opens the stream of one part of a disk
OpenPart = Callable[[CopiedDisk, int], AbstractContextManager[changes.Source]]
#: the base image of a disk, by its id
BaseOf = Callable[[str], BaseImage]


@dataclass
class _Disk:
    size: int
    block: int
    base_image_id: str | None = None
    #: how many parts of the present round have arrived
    parts: int = 0


@dataclass
class _State:
    """``round``: the present one; ``whole``: the last one that arrived whole; ``completed``: disks with the last changes.

    Parts of a round that was abandoned may have arrived. The next round counts from an earlier one, so it has them again.
    ``boot``: parts were noted in it (`durable.this_boot`).
    """

    round: int = 0
    boot: str = ""
    whole: int | None = None
    completed: list[str] = field(default_factory=list)
    disks: dict[str, _Disk] = field(default_factory=dict)


_DECODER = msgspec.json.Decoder(_State)


class Copies:
    """The copies of one host."""

    def __init__(self, directory: Path, driver: Driver) -> None:
        self._directory = directory
        self._driver = driver
        durable.make_folder(directory, mode=0o700)
        durable.sync(directory)

    def begin(self, token: OperationToken, instance_uuid: str, copied: CopyRound) -> None:
        """Prepares the copies for the parts of this round; parts that have arrived stay.

        Raises DiskTransferFailed if a round that it needs has not arrived, or a disk has an impossible name or block size.
        """
        for disk in copied.disks:
            checked(disk.name)
            if disk.block < 1 or disk.size < 0:
                raise errors.DiskTransferFailed(
                    "The server's disk has an impossible size.", details=f"{disk.size} bytes in blocks of {disk.block}"
                )
        folder = self._directory / f"{token.operation_id}.{instance_uuid}"
        state = self._read(folder)
        if state is not None and state.round == copied.number:
            return
        if copied.since is None:
            if folder.exists():
                self._delete(folder)
            folder.mkdir(mode=0o700)
            durable.sync(self._directory)
            state = _State()
            for disk in copied.disks:
                state.disks[disk.name] = _Disk(disk.size, disk.block, disk.base_image_id)
        elif state is None or state.whole != copied.since:
            raise _lost(f"round {copied.since} is missing")
        state.round = copied.number
        for kept in state.disks.values():
            kept.parts = 0
        self._write(folder, state, is_lasting=False)

    def receive(
        self,
        token: OperationToken,
        copied: CopyRound,
        disk: CopiedDisk,
        opened: OpenPart,
        base_of: BaseOf,
        arrived: changes.Arrived,
        *,
        until: int | None = None,
    ) -> int:
        """Adds the missing parts of a disk, those below ``until`` (None: all); returns how many bytes travelled.

        Raises DiskTransferBroken if a part breaks off or is damaged; it can be requested again.
        """
        folder = self._folder(token.operation_id)
        state = self._read(folder) if folder is not None else None
        if folder is None or state is None or state.round != copied.number or self._is_lost(folder, disk.name):
            raise _lost(disk.name)
        known, sent = state.disks[disk.name], 0
        last = disk.parts if until is None else min(until, disk.parts)
        if known.parts < last:
            digests = self._digests(folder, disk.name, known)
            with self._driver.open_copy(_copy(folder, disk.name, known, base_of)) as writer:
                while known.parts < last:
                    with opened(disk, known.parts) as source:
                        sent += changes.apply(source, writer, digests, arrived)
                    known.parts += 1
                    is_last = known.parts == disk.parts
                    durable.replace(folder / f"{disk.name}{_DIGESTS}", digests.encode(), is_synced=is_last)
                    self._note(folder, state, copied)
                    injector.reach("warm.part.in")
        elif state.whole != copied.number:
            # A disk without parts may be all that was missing.
            self._note(folder, state, copied)
        return sent

    def _note(self, folder: Path, state: _State, copied: CopyRound) -> None:
        """Notes which parts have arrived, and whether that is the whole round."""
        is_whole = all(state.disks[each.name].parts >= each.parts for each in copied.disks)
        if is_whole:
            state.whole = copied.number
        self._write(folder, state, is_lasting=is_whole)

    def complete(self, token: OperationToken, name: str, last: Path, base_of: BaseOf) -> Path | None:
        """Adds the last changes, which the file ``last`` has, and returns the disk: it is now the same as at the source.

        None: that was done before, and the driver has taken the disk. Raises DiskTransferFailed if there is no copy of it.
        """
        folder = self._folder(token.operation_id)
        state = self._read(folder) if folder is not None else None
        if state is not None and folder is not None and name in state.completed and not self._has(folder, name):
            return None
        if folder is None or state is None or state.whole is None or self._is_lost(folder, name):
            raise _lost(name)
        known = state.disks[name]
        digests = self._digests(folder, name, known)
        copy = _copy(folder, name, known, base_of)
        with self._driver.open_copy(copy) as writer, last.open("rb") as source:
            changes.apply(source, writer, digests, lambda _travelled, _of_disk: None)
        # Nothing more arrives, so the digests are not kept. If this process dies now, the changes are applied once more.
        state.completed.append(name)
        self._write(folder, state, is_lasting=True)
        last.unlink()
        return folder / name

    def _is_lost(self, folder: Path, name: str) -> bool:
        """Whether a copy has vanished. Without digests, a missing file is no loss: nothing has arrived yet."""
        return (folder / f"{name}{_DIGESTS}").exists() and not self._has(folder, name)

    def is_taken(self, operation_id: str) -> bool:
        """Whether the driver has taken a disk of this move. Then the guest's disk is the only whole copy on this host."""
        folder = self._folder(operation_id)
        state = self._read(folder) if folder is not None else None
        return folder is not None and state is not None and any(not self._has(folder, name) for name in state.completed)

    def has_completed(self, operation_id: str) -> bool:
        """Whether a disk of this move has the last changes."""
        folder = self._folder(operation_id)
        state = self._read(folder) if folder is not None else None
        return state is not None and bool(state.completed)

    def discard(self, operation_id: str) -> None:
        folder = self._folder(operation_id)
        if folder is not None:
            self._delete(folder)

    def discard_all(self, instance_uuid: str) -> None:
        for folder in folders.of_server(self._directory, instance_uuid):
            self._delete(folder)

    def servers(self) -> set[str]:
        """The servers of which there are copies."""
        return folders.servers(self._directory)

    def _has(self, folder: Path, name: str) -> bool:
        return self._driver.has_copy(folder / name)

    def _delete(self, folder: Path) -> None:
        # Whatever state says: it may be torn.
        for path in folder.iterdir():
            if path.name != _STATE and not path.name.endswith(_DIGESTS):
                self._driver.discard_copy(path)
        # It may return after a power cut: the host's inventory finds what no move has.
        shutil.rmtree(folder)

    def _digests(self, folder: Path, name: str, disk: _Disk) -> changes.Digests:
        """Raises DiskTransferFailed if a power cut took them."""
        try:
            return changes.Digests(disk.size, disk.block, (folder / f"{name}{_DIGESTS}").read_bytes())
        except FileNotFoundError:
            return changes.Digests(disk.size, disk.block)
        except ValueError as failure:
            raise _lost(f"{name}: {failure}") from failure

    def _read(self, folder: Path) -> _State | None:
        try:
            state = _DECODER.decode((folder / _STATE).read_bytes())
        except (FileNotFoundError, msgspec.MsgspecError):
            # Its disks travel whole.
            return None
        # Release 0.1.0 synced each part, and wrote no boot into its records.
        if state.boot not in ("", durable.this_boot()) and state.round != state.whole:
            if state.whole is None:
                return None
            state.round = state.whole
        return state

    def _write(self, folder: Path, state: _State, *, is_lasting: bool) -> None:
        state.boot = durable.this_boot()
        content = msgspec.json.encode(state)
        if is_lasting:
            durable.write(folder / _STATE, content)
        else:
            durable.replace(folder / _STATE, content)

    def _folder(self, operation_id: str) -> Path | None:
        return folders.of_operation(self._directory, operation_id)


def _lost(details: str) -> errors.DiskTransferFailed:
    return errors.DiskTransferFailed("What was copied of the server's disks before is not here.", details=details)


def _copy(folder: Path, name: str, disk: _Disk, base_of: BaseOf) -> DiskCopy:
    operation_id, _, uuid = folder.name.partition(".")
    base = base_of(disk.base_image_id) if disk.base_image_id is not None else None
    return DiskCopy(folder / name, operation_id, uuid, disk.size, base, disk.base_image_id)
