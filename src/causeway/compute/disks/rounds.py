"""The source's side of warm moves: the disks of a running guest, made readable round by round, in parts.

::

    ROUNDS/OPERATION.SERVER/round.json        the present round: its number, its disks, which extents each part has, the secret
    ROUNDS/OPERATION.SERVER/NAME.digests      the digests of all blocks of a disk that were sent so far
    ROUNDS/OPERATION.SERVER/NAME.changes      what changed since the last round, read when the guest was off

All are files, so a round outlives its process: after a restart, the target continues with the next part. It does not outlive its
machine, because neither does the guest, nor what its hypervisor knows of changes. So nothing here is synced, and a record of an
earlier boot is none.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
import threading
from collections.abc import Callable, Collection, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from causeway import durable, errors
from causeway.compute.disks import changes, folders
from causeway.compute.disks.packing import ZSTD, Packer, Verdict
from causeway.faults import injector
from causeway.model.instance import Instance
from causeway.model.outcomes import OperationToken
from causeway.model.warm import CHANGES, CopiedDisk, CopyRound
from causeway.virt.driver import DiskExport, Driver
from causeway.virt.warm import RoundDisk

LOG = logging.getLogger(__name__)

# A transfer that breaks repeats no more than this.
PART_BYTES = 128 << 20
_OPERATION = re.compile(r"[0-9a-f-]{36}")
_RECORD = "round.json"
# Numbers of nine digits are in the URLs of parts (`handover.offered_at`); a record counts on from here.
_MOST_FIRST = 1 << 29


@dataclass
class _Disk:
    name: str
    size: int
    block: int
    base_image_id: str | None = None
    # (offset, length) of each part
    parts: list[list[tuple[int, int]]] = field(default_factory=list)
    # `DiskReader.scale` of the round, and of the file with the last changes.
    scale: float = 1.0
    last_scale: float = 1.0

    @property
    def to_send(self) -> int:
        return round(self.scale * sum(length for part in self.parts for _offset, length in part))


@dataclass
class _Record:
    """``number``: of the latest round; ``is_open``: it can still be read. ``boot``: see `durable.this_boot`.

    ``is_limited``: the guest may write no faster than it was ordered.

    Numbers begin anywhere. So no target takes a round for one that it had before this host lost its record.
    """

    instance: Instance
    secret: str = field(repr=False)
    number: int = 0
    boot: str = ""
    since: int | None = None
    is_open: bool = False
    is_limited: bool = False
    disks: list[_Disk] = field(default_factory=list)


_DECODER = msgspec.json.Decoder(_Record)


class Rounds:
    """The rounds of one host. ``slow_down`` gets the number of bytes that are sent next, and returns when they may be sent.

    ``may_pack``: whether this host may compress what it sends.
    """

    def __init__(
        self,
        directory: Path,
        driver: Driver,
        slow_down: Callable[[int], None],
        may_pack: Callable[[], bool] = lambda: True,
    ) -> None:
        self._directory = directory
        self._driver = driver
        self._slow_down = slow_down
        self._may_pack = may_pack
        # (move, disk) -> whether it pays to compress that disk for its target
        self._verdicts: dict[tuple[str, str], Verdict] = {}
        # (move, disk) -> the codings that its receiver knows; after a restart of this process, those of every release
        self._accepted: dict[tuple[str, str], Collection[str]] = {}
        # (move, disk) -> its latest reader, the only one that may note digests: an earlier one may still be sending
        self._readers: dict[tuple[str, str], object] = {}
        self._noting = threading.Lock()
        durable.make_folder(directory, mode=0o700)
        durable.sync(directory)

    def begin(
        self, token: OperationToken, instance: Instance, names: list[str], *, since: int | None, flatten: bool, url: str
    ) -> CopyRound:
        """Begins a round: the disks as they are now. ``since``: only what changed since that round, if the driver knows that.

        Returns the latest round instead if it has the same ``since`` and can still be read. Raises WarmCopyImpossible if the
        guest does not run, or its disks can't be read while it runs.
        """
        folder = self._directory / f"{token.operation_id}.{instance.uuid}"
        record = self._read(folder)
        if record is None:
            if folder.exists():
                self._discard(folder)
            folder.mkdir(mode=0o700)
            number = secrets.randbelow(_MOST_FIRST)
            record, since = _Record(instance, secrets.token_urlsafe(32), number, durable.this_boot()), None
        if not (record.is_open and record.since == since and self._driver.has_round(instance, record.number)):
            self._begin(folder, record, names, since=since, flatten=flatten)
        disks = [
            CopiedDisk(disk.name, disk.size, disk.block, disk.to_send, len(disk.parts), disk.base_image_id, disk.scale)
            for disk in record.disks
        ]
        codings = [each for each in changes.CODINGS if each != ZSTD or self._may_pack()]
        url = f"{url}/{token.operation_id}/rounds"
        return CopyRound(record.number, record.since, url, record.secret, disks, codings)

    def _begin(self, folder: Path, record: _Record, names: list[str], *, since: int | None, flatten: bool) -> None:
        # Written first: no number is used twice, even if its round fails.
        record.number, record.is_open = record.number + 1, False
        self._write(folder, record)
        self._refuse_readers(folder)
        begun = self._driver.begin_round(record.instance, names, record.number, since=since, flatten=flatten)
        injector.reach("warm.round.begun")
        record.since = begun.since
        record.disks = [self._divided(record, disk) for disk in begun.disks]
        if begun.since is None:
            for disk in begun.disks:
                (folder / f"{disk.name}.digests").unlink(missing_ok=True)
        record.is_open = True
        self._write(folder, record)

    def _divided(self, record: _Record, disk: RoundDisk) -> _Disk:
        found = _Disk(disk.name, disk.size, disk.block, disk.base_image_id)
        with self._driver.open_round(record.instance, disk.name, record.number) as reader:
            found.scale, left = reader.scale, 0
            for offset, length in reader.extents():
                at = offset
                while at < offset + length:
                    if left <= 0:
                        found.parts.append([])
                        left = PART_BYTES
                    size = min(left, offset + length - at)
                    found.parts[-1].append((at, size))
                    at, left = at + size, left - size
        return found

    def end(self, operation_id: str) -> None:
        """Ends the present round: nobody can read it any more. Changes are still tracked for the next one."""
        folder = self._folder(operation_id)
        record = self._read(folder) if folder is not None else None
        if folder is None or record is None:
            return
        # What it still has in memory it should write fast, whether it shuts down or is saved.
        self._lift_limit(folder, record)
        if record.is_open:
            record.is_open = False
            self._write(folder, record)
            self._refuse_readers(folder)
            self._driver.end_round(record.instance, record.number)

    def limit_writes(self, operation_id: str, bytes_per_second: int) -> None:
        """Limits what the guest writes to each of its disks, until `end` or `discard`. Without rounds nothing happens."""
        folder = self._folder(operation_id)
        record = self._read(folder) if folder is not None else None
        if folder is not None and record is not None:
            # Written first: what may be limited is found and lifted.
            record.is_limited = True
            self._write(folder, record)
            self._driver.limit_writes(record.instance, bytes_per_second)

    def _lift_limit(self, folder: Path, record: _Record) -> None:
        if record.is_limited:
            self._driver.limit_writes(record.instance, None)
            record.is_limited = False
            self._write(folder, record)

    def is_opened_by(self, operation_id: str, secret: str) -> bool:
        folder = self._folder(operation_id)
        record = self._read(folder) if folder is not None else None
        return record is not None and secrets.compare_digest(record.secret.encode(), secret.encode())

    def read_part(
        self, operation_id: str, number: int, name: str, part: int, accepts: Collection[str] = (), later: float = 0.0
    ) -> Generator[bytes | memoryview]:
        """The stream of a part. Raises DiskTransferBroken if the round can't be read any more; a new round may be.

        ``accepts``: the codings that the receiver knows. ``later``: see `Packer`. Each piece is valid until the next one is
        wanted.
        """
        folder = self._folder(operation_id)
        record = self._read(folder) if folder is not None else None
        disk = next((each for each in record.disks if each.name == name), None) if record is not None else None
        if folder is None or record is None or disk is None or not record.is_open:
            raise _gone(operation_id, number)
        if record.number != number or not 0 <= part < len(disk.parts):
            raise _gone(operation_id, number)
        self._accepted[operation_id, name] = accepts
        return self._read_part(folder, record, disk, part, self._packer(operation_id, name, accepts, later), accepts)

    def _packer(self, operation_id: str, name: str, accepts: Collection[str], later: float) -> Packer | None:
        if ZSTD not in accepts or not self._may_pack():
            self._verdicts.pop((operation_id, name), None)
            return None
        return Packer(self._verdicts.setdefault((operation_id, name), Verdict()), later)

    def _read_part(
        self,
        folder: Path,
        record: _Record,
        disk: _Disk,
        part: int,
        packer: Packer | None,
        accepts: Collection[str],
    ) -> Generator[bytes | memoryview]:
        key, this = (_operation_of(folder), disk.name), object()
        with self._noting:
            self._readers[key] = this
            digests = self._digests(folder, disk)

        def note() -> None:
            with self._noting:
                if self._readers.get(key) is not this:
                    # The receiver asked again meanwhile, or the round ended. What was noted since must stay.
                    raise _gone(key[0], record.number)
                durable.replace(folder / f"{disk.name}.digests", digests.encode())

        with self._driver.open_round(record.instance, disk.name, record.number) as reader:
            extents = disk.parts[part]
            for piece in changes.stream(
                reader,
                extents,
                digests,
                is_full=record.since is None,
                leads_to=sum(extents[-1]),
                slow_down=lambda size: self._slow_down(round(size * disk.scale)),
                packer=packer,
                codings=accepts,
                # The receiver never has a part that is not noted here.
                before_end=note,
            ):
                injector.reach("warm.part.out")
                yield piece

    def changes_since(self, operation_id: str, name: str, since: int) -> DiskExport:
        """A file with what changed on a disk between a round and the end of the guest.

        Raises WarmCopyImpossible if nobody knows what changed.
        """
        folder = self._folder(operation_id)
        record = self._read(folder) if folder is not None else None
        disk = next((each for each in record.disks if each.name == name), None) if record is not None else None
        if folder is None or record is None or disk is None:
            raise _unknown(name)
        path = folder / f"{name}.{CHANGES}"
        if not path.exists():
            key, digests = (operation_id, name), self._digests(folder, disk)
            partial = path.with_suffix(".partial")
            verdict = self._verdicts.get(key)
            # The same target gets these, so the verdict still holds, and it reads the same codings.
            packs = verdict is not None and verdict.packs
            packer = Packer(Verdict(packs=True, left=disk.size + 1)) if packs else None
            with self._driver.open_changes(record.instance, name, since) as reader:
                if reader is None:
                    raise _unknown(name)
                extents = reader.extents()
                with partial.open("wb") as file:
                    file.writelines(
                        changes.stream(
                            reader, extents, digests, is_full=False, packer=packer, codings=self._accepted.get(key, ())
                        )
                    )
                if reader.scale != 1.0:
                    changed = sum(length for _offset, length in extents)
                    disk.last_scale = max(1.0, changed * reader.scale / partial.stat().st_size)
                    self._write(folder, record)
            partial.replace(path)
        return DiskExport(name, path, CHANGES, path.stat().st_size, disk.base_image_id, disk.last_scale)

    def discard(self, operation_id: str) -> None:
        """Ends the rounds of a move: changes are no longer tracked, and all files are deleted."""
        folder = self._folder(operation_id)
        if folder is not None:
            self._discard(folder)

    def discard_unowned(self, instance_uuid: str) -> None:
        """Ends a round that the driver still has and no move began: the upload of a disk (`running_disk`) that broke off.

        The caller must hold the guest's lock, so no such upload is under way.
        """
        if not folders.of_server(self._directory, instance_uuid):
            self._driver.end_rounds(instance_uuid)

    def discard_all(self, instance_uuid: str) -> None:
        for folder in folders.of_server(self._directory, instance_uuid):
            self._discard(folder)
        self._driver.end_rounds(instance_uuid)

    def servers(self) -> set[str]:
        """The servers with rounds."""
        return folders.servers(self._directory)

    def _refuse_readers(self, folder: Path) -> None:
        """Whoever is still reading notes nothing more."""
        with self._noting:
            self._readers = {key: reader for key, reader in self._readers.items() if key[0] != _operation_of(folder)}

    def _discard(self, folder: Path) -> None:
        operation_id = _operation_of(folder)
        self._refuse_readers(folder)
        self._verdicts = {key: found for key, found in self._verdicts.items() if key[0] != operation_id}
        self._accepted = {key: found for key, found in self._accepted.items() if key[0] != operation_id}
        record = self._read(folder)
        if record is not None:
            self._lift_limit(folder, record)
        self._driver.end_rounds(folder.name.partition(".")[2])
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)

    def _digests(self, folder: Path, disk: _Disk) -> changes.Digests:
        try:
            return changes.Digests(disk.size, disk.block, (folder / f"{disk.name}.digests").read_bytes())
        except FileNotFoundError:
            return changes.Digests(disk.size, disk.block)

    def _read(self, folder: Path) -> _Record | None:
        """None: the next round begins anew, with all of the disks."""
        with suppress(FileNotFoundError, msgspec.MsgspecError):
            record = _DECODER.decode((folder / _RECORD).read_bytes())
            # Release 0.1.0 synced its records, and wrote no boot into them.
            return record if record.boot in ("", durable.this_boot()) else None
        return None

    def _write(self, folder: Path, record: _Record) -> None:
        durable.replace(folder / _RECORD, msgspec.json.encode(record), mode=0o600)

    def _folder(self, operation_id: str) -> Path | None:
        # What comes over the network must not name other files.
        if not _OPERATION.fullmatch(operation_id):
            return None
        return folders.of_operation(self._directory, operation_id)


def _operation_of(folder: Path) -> str:
    return folder.name.partition(".")[0]


def _unknown(name: str) -> errors.WarmCopyImpossible:
    return errors.WarmCopyImpossible("What changed of a disk since it was copied is not known any more.", details=name)


def _gone(operation_id: str, number: int) -> errors.DiskTransferBroken:
    return errors.DiskTransferBroken(
        "The disks of the server can't be read any more.", details=f"round {number} of {operation_id}"
    )
