"""Makes the disks of a running guest that are in a pool of Ceph readable as they were at one instant, and what changed since.

A round is a snapshot of each disk. What changed between two of them Ceph knows, also if QEMU was killed meanwhile. A snapshot
that a later round does not count from is deleted; the rest when the rounds end::

    POOL/UUID_disk@round-HOST-SERIES-NUMBER   a round
    INSTANCES/snapshots-UUID.json             the series, its disks, which of its rounds exist

The disks of one guest are not kept at the same instant. That does not matter: between the last round and the guest's end
everything is read once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import msgspec

from causeway import durable
from causeway.errors import GuestFailed, WarmCopyImpossible
from causeway.model.instance import Instance
from causeway.model.shared_disk import ROUND
from causeway.model.states import PowerState
from causeway.virt import warm
from causeway.virt.libvirt import power
from causeway.virt.libvirt.agent import Agent
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.storage.extents import BLOCK
from causeway.virt.libvirt.storage.nbd import NbdClient
from causeway.virt.libvirt.storage.rbd_disks import RbdDisks
from causeway.virt.warm import is_zeros

Extents = list[tuple[int, int]]
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass
class _Record:
    """``series``: how the names of its snapshots begin. ``images``: name of a disk -> in the pool. ``rounds``: that may exist."""

    series: str = ""
    images: dict[str, str] = field(default_factory=dict)
    rounds: list[int] = field(default_factory=list)
    open: int | None = None
    since: int | None = None

    def label(self, number: int) -> str:
        return f"{self.series}{number}"


_DECODER = msgspec.json.Decoder(_Record)


class _Reader(warm.DiskReader):
    """Reads a disk, or a snapshot of it, that nobody changes. It is opened when somebody reads."""

    def __init__(
        self, stack: ExitStack, opened: AbstractContextManager[NbdClient], find: Callable[[], Extents]
    ) -> None:
        self._stack, self._opened, self._find = stack, opened, find
        self._client: NbdClient | None = None

    def extents(self) -> Extents:
        return self._find()

    def read_into(self, offset: int, buffer: memoryview) -> None:
        if self._client is None:
            self._client = self._stack.enter_context(self._opened)
        self._client.read_into(offset, buffer)

    def is_of_base(self, offset: int, data: memoryview) -> bool:  # noqa: ARG002
        # The image below it travels with the disk.
        return is_zeros(data)


class SnapshotRounds:
    """The rounds of one host's guests with disks in the pool."""

    def __init__(self, connection: Connection, disks: RbdDisks, host: str) -> None:
        self._connection = connection
        self._disks = disks
        self._store, self._images = disks.store, disks.images
        self._series = f"{ROUND}{_NOT_IN_NAMES.sub('-', host)[:80]}-"
        self._agent = Agent(connection, disks.directory)

    def knows(self, uuid: str) -> bool:
        """Whether there are rounds of the guest, or may be."""
        return self._path(uuid).exists()

    def begin(self, instance: Instance, names: list[str], number: int, *, since: int | None) -> warm.Round:
        """See `WarmCopyMethods.begin_round`."""
        uuid = instance.uuid
        if power.state(self._connection, uuid) is not PowerState.RUNNING:
            raise WarmCopyImpossible(f"Guest {uuid} does not run.")
        offered = self._disks.offered(uuid)
        images = {name: self._store.existing(offered[name].name) for name in names}
        record = self._read(uuid)
        if since is None or any(record.label(since) not in image.snapshots for image in images.values()):
            since = None
            record = _Record(f"{self._series}{uuid4().hex[:8]}-", {name: offered[name].name for name in names})
        # Recorded first, so that it can be found and deleted.
        record.rounds = [*([since] if since is not None else []), number]
        record.open, record.since = None, since
        self._write(uuid, record)
        for name, image in images.items():
            kept = record.label(since) if since is not None else None
            for label in image.snapshots:
                # Also those of a host whose guest this was: nobody has rounds of it but its present host.
                if label.startswith(ROUND) and label != kept:
                    self._store.delete_snapshot(offered[name].name, label)
        # The first round is never the last one before the guest is powered off: nothing has to stand still for it.
        with self._agent.still(instance) if since is not None else nullcontext():
            for name in names:
                self._store.make_snapshot(offered[name].name, record.label(number))
        record.open = number
        self._write(uuid, record)
        return warm.Round(number, since, [warm.RoundDisk(name, images[name].size, BLOCK) for name in names])

    def has(self, uuid: str, number: int) -> bool:
        record = self._read(uuid)
        return record.open == number and all(
            (image := self._store.image(name)) is not None and record.label(number) in image.snapshots
            for name in record.images.values()
        )

    @contextmanager
    def open(self, uuid: str, name: str, number: int) -> Iterator[warm.DiskReader]:
        record = self._read(uuid)
        if record.open != number or name not in record.images:
            raise GuestFailed(f"Round {number} of guest {uuid} can't be read any more.")
        image, label = record.images[name], record.label(number)
        since = record.label(record.since) if record.since is not None else None

        def changes() -> Extents:
            found = self._store.changes(image, since, label)
            if found is None:
                raise GuestFailed(f"Round {number} of guest {uuid} can't be read any more.")
            return found

        with ExitStack() as stack:
            yield _Reader(stack, self._images.opened(image, label), changes)

    def end(self, uuid: str) -> None:
        self._agent.try_to_thaw(uuid)
        record = self._read(uuid)
        if record.open is not None:
            record.open = None
            self._write(uuid, record)

    @contextmanager
    def open_changes(self, uuid: str, name: str, since: int) -> Iterator[warm.DiskReader | None]:
        """See `WarmCopyMethods.open_changes`. The guest is off."""
        record = self._read(uuid)
        image = record.images.get(name)
        found = self._store.changes(image, record.label(since), None) if image is not None else None
        if image is None or found is None:
            yield None
            return
        with ExitStack() as stack:
            yield _Reader(stack, self._images.opened(image), lambda: found)

    def discard(self, uuid: str) -> None:
        """Deletes all snapshots and files of the guest's rounds. The guest may run, be off, or be gone with its disks."""
        if not self.knows(uuid):
            return
        self._agent.discard(uuid)
        record = self._read(uuid)
        for name in record.images.values():
            image = self._store.image(name)
            for label in image.snapshots if image is not None else ():
                if label.startswith(record.series):
                    self._store.delete_snapshot(name, label)
        durable.delete(self._path(uuid))

    def _path(self, uuid: str) -> Path:
        return self._disks.directory / f"snapshots-{uuid}.json"

    def _read(self, uuid: str) -> _Record:
        try:
            return durable.read(self._path(uuid), _DECODER.decode) or _Record()
        except durable.Torn:
            return _Record()

    def _write(self, uuid: str, record: _Record) -> None:
        durable.write(self._path(uuid), msgspec.json.encode(record))
