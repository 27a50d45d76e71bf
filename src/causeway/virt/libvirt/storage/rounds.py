"""Makes the disks of a running guest readable as they were at one instant, and what changed since an earlier instant.

QEMU does this with a backup job in pull mode: it serves the disks over NBD as they were when the job began, and records from then
on which blocks the guest writes to (a checkpoint: a dirty bitmap in the file of the disk). When the guest is off, the bitmap is
in the file. A bitmap is lost if QEMU is killed or the guest is defined again; then the next round has all of the disk.
"""

from __future__ import annotations

import hashlib
import tempfile
import uuid as uuids
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libvirt
import msgspec

from causeway import durable
from causeway.errors import GuestFailed, WarmCopyImpossible
from causeway.model.instance import Instance
from causeway.model.states import PowerState
from causeway.virt import warm
from causeway.virt.driver import ROOT_DISK
from causeway.virt.libvirt import power
from causeway.virt.libvirt.agent import Agent
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.guest_xml.domain_xml import target_of_file
from causeway.virt.libvirt.storage import backups, nbd, qemu_img
from causeway.virt.libvirt.storage.disk_readers import Base, Reader
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.libvirt.storage.extents import BLOCK, joined
from causeway.virt.libvirt.storage.nbd import NbdClient
from causeway.virt.libvirt.storage.nbd_server import served

_PREFIX = "causeway-round-"
_EXPORTED_BITMAP = "changed"


@dataclass
class _Record:
    """What is recorded of a guest. ``checkpoints``: number of a round -> its checkpoint. ``flatten``: base images don't count."""

    checkpoints: dict[int, str] = field(default_factory=dict)
    open: int | None = None
    since: int | None = None
    flatten: bool = False
    names: list[str] = field(default_factory=list)


class Rounds:
    """The rounds of one host's guests."""

    def __init__(self, connection: Connection, disks: InstanceDisks) -> None:
        self._connection = connection
        self._disks = disks
        self._agent = Agent(connection, disks.directory)

    def recover(self) -> None:
        """Ends what an earlier process left that a guest would feel: frozen file systems."""
        self._agent.thaw_all()

    def thaw(self, uuid: str) -> None:
        """Ends what a guest feels of an attempt that broke off: frozen file systems."""
        self._agent.discard(uuid)

    def begin(
        self, instance: Instance, names: list[str], number: int, *, since: int | None, flatten: bool
    ) -> warm.Round:
        """See `WarmCopyMethods.begin_round`. Also raises `WarmCopyImpossible` if somebody else makes a backup of the guest."""
        uuid = instance.uuid
        base_image_id = None
        if ROOT_DISK in names and not flatten:
            base_image_id = self._disks.base_image_of(uuid, instance.image_ref)
            # What no image is known to have is sent.
            flatten = base_image_id is None
        if since is not None and not self._knows(uuid, since):
            since = None
        try:
            sizes = self._begin_one(instance, names, number, since=since, flatten=flatten)
        except GuestFailed:
            if since is None:
                raise
            # QEMU was killed, so what changed is not known.
            since = None
            sizes = self._begin_one(instance, names, number, since=None, flatten=flatten)
        disks = [
            warm.RoundDisk(name, size, BLOCK, base_image_id if name == ROOT_DISK else None)
            for name, size in zip(names, sizes, strict=True)
        ]
        return warm.Round(number, since, disks)

    def _begin_one(
        self, instance: Instance, names: list[str], number: int, *, since: int | None, flatten: bool
    ) -> list[int]:
        """Returns the sizes of the disks in bytes. ``since``: a round whose checkpoint exists."""
        uuid = instance.uuid
        record = self._read(uuid)
        self._end_job(uuid)
        if since is None:
            self._delete_checkpoints(uuid)
            record = _Record(flatten=flatten)
        checkpoint = f"{_PREFIX}{number}-{uuids.uuid4().hex[:8]}"
        # Recorded first, so that it can be found and deleted.
        record.checkpoints[number], record.open, record.since, record.names = checkpoint, None, since, names
        self._write(uuid, record)
        former = record.checkpoints[since] if since is not None else None
        # The first round is never the last one before the guest is powered off: nothing has to stand still for it.
        with self._agent.still(instance) if since is not None else nullcontext():
            self._connection.call(
                f"make the disks of guest {uuid} readable",
                lambda hypervisor: self._begin(hypervisor, uuid, names, checkpoint, former),
            )
        record.open = number
        self._write(uuid, record)
        return [self._size(uuid, name) for name in names]

    def _knows(self, uuid: str, number: int) -> bool:
        """Whether QEMU records what changed since a round."""
        checkpoint = self._read(uuid).checkpoints.get(number)
        if checkpoint is None:
            return False

        def ask(hypervisor: Any) -> bool:
            domain = power.find(hypervisor, uuid)
            return domain is not None and any(each.getName() == checkpoint for each in domain.listAllCheckpoints())

        return self._connection.call(f"list the checkpoints of guest {uuid}", ask, again=True)

    def has(self, uuid: str, number: int) -> bool:
        record = self._read(uuid)
        return record.open == number and self._job(uuid) == self._socket(uuid)

    @contextmanager
    def open(self, uuid: str, name: str, number: int) -> Iterator[warm.DiskReader]:
        record = self._read(uuid)
        if record.open != number:
            raise GuestFailed(f"Round {number} of guest {uuid} can't be read any more.")
        bitmap = f"qemu:dirty-bitmap:{_EXPORTED_BITMAP}" if record.since is not None else None
        contexts = (nbd.ALLOCATION, *([bitmap] if bitmap is not None else []))
        with ExitStack() as stack:
            client = stack.enter_context(NbdClient(self._socket(uuid), name, contexts))
            if bitmap is not None:
                dirty = [(each.offset, each.length) for each in client.extents(bitmap) if each.flags & nbd.DIRTY]
                yield Reader(client, joined(dirty, client.size), None)
                return
            base = None if record.flatten or name != ROOT_DISK else stack.enter_context(self._base(uuid, name))
            found = [
                (each.offset, each.length)
                for each in client.extents(nbd.ALLOCATION)
                if not each.flags & nbd.READS_ZEROS
            ]
            # The guest may have zeroed blocks that the base has.
            found += base.extents() if base is not None else []
            yield Reader(client, joined(found, client.size), base)

    def end(self, uuid: str) -> None:
        record = self._read(uuid)
        self._agent.try_to_thaw(uuid)
        self._end_job(uuid)
        if record.open is not None:
            record.open = None
            self._write(uuid, record)

    @contextmanager
    def open_changes(self, uuid: str, name: str, since: int) -> Iterator[warm.DiskReader | None]:
        """See `WarmCopyMethods.open_changes`. The guest is off."""
        checkpoints = self._read(uuid).checkpoints
        disk = self._path(uuid, name)
        saved = _bitmaps(disk)
        # A checkpoint that is not in the file was never begun: if QEMU had been killed, the older ones would be missing too.
        wanted = [name for number, name in checkpoints.items() if number >= since and name in saved]
        if checkpoints.get(since) not in wanted or not all(saved[name] for name in wanted):
            yield None
            return
        dirty: list[tuple[int, int]] = []
        for checkpoint in wanted:
            context = f"qemu:dirty-bitmap:{checkpoint}"
            with served(disk, "qcow2", (context,), bitmap=checkpoint) as client:
                dirty += [(each.offset, each.length) for each in client.extents(context) if each.flags & nbd.DIRTY]
        with served(disk, "qcow2") as client:
            yield Reader(client, joined(dirty, client.size), None)

    def discard(self, uuid: str) -> None:
        """Ends the job and deletes all checkpoints, bitmaps and files of the guest's rounds."""
        if not self._record_path(uuid).exists():
            return
        self._agent.discard(uuid)
        self._end_job(uuid)
        self._delete_checkpoints(uuid)
        if power.state(self._connection, uuid) in power.OFF:
            for name in self._read(uuid).names:
                path = self._path(uuid, name)
                for bitmap in _bitmaps(path) if path.exists() else ():
                    qemu_img.remove_bitmap(path, bitmap)
        durable.delete(self._record_path(uuid))

    # jobs

    def _begin(self, hypervisor: Any, uuid: str, names: list[str], checkpoint: str, former: str | None) -> None:
        domain = power.find(hypervisor, uuid)
        if domain is None or power.power_state_of(domain) != PowerState.RUNNING:
            raise WarmCopyImpossible(f"Guest {uuid} does not run.")
        xml = domain.XMLDesc()
        backup, mark = ET.Element("domainbackup", mode="pull"), ET.Element("domaincheckpoint")
        if former is not None:
            ET.SubElement(backup, "incremental").text = former
        ET.SubElement(backup, "server", transport="unix", socket=str(self._socket(uuid)))
        ET.SubElement(mark, "name").text = checkpoint
        disks, marked = ET.SubElement(backup, "disks"), ET.SubElement(mark, "disks")
        for name in names:
            target = target_of_file(xml, self._disks.folder(uuid) / name)
            if target is None:
                raise WarmCopyImpossible(f"Guest {uuid} has no disk {name}.")
            disk = ET.SubElement(disks, "disk", name=target, backup="yes", type="file", exportname=name)
            if former is not None:
                disk.set("exportbitmap", _EXPORTED_BITMAP)
            ET.SubElement(disk, "scratch", file=str(self._scratch(uuid, name)))
            ET.SubElement(marked, "disk", name=target, checkpoint="bitmap")
        domain.backupBegin(ET.tostring(backup, encoding="unicode"), ET.tostring(mark, encoding="unicode"), 0)

    def _end_job(self, uuid: str) -> None:
        """Ends our backup job of the guest. Raises `WarmCopyImpossible` if there is a job that is not ours."""
        job = self._job(uuid)
        if job is not None and job != self._socket(uuid):
            raise WarmCopyImpossible(f"Somebody else makes a backup of guest {uuid}.", details=str(job))
        if job is not None:
            backups.end_job(self._connection, uuid)
        self._socket(uuid).unlink(missing_ok=True)
        for path in self._disks.directory.glob(f"scratch-{uuid}-*"):
            path.unlink(missing_ok=True)

    def _job(self, uuid: str) -> Path | None:
        """The socket of the guest's backup job, empty for a job without a socket; None: there is no job."""

        def ask(hypervisor: Any) -> Path | None:
            if power.find(hypervisor, uuid) is None:
                return None
            xml = backups.job_xml(hypervisor, uuid)
            if xml is None:
                return None
            server = ET.fromstring(xml).find("server")
            return Path("" if server is None else server.get("socket", ""))

        return self._connection.call(f"describe the copy of guest {uuid}", ask, again=True)

    def _delete_checkpoints(self, uuid: str) -> None:
        def delete(hypervisor: Any) -> None:
            domain = power.find(hypervisor, uuid)
            found = (
                domain.listAllCheckpoints(libvirt.VIR_DOMAIN_CHECKPOINT_LIST_TOPOLOGICAL) if domain is not None else []
            )
            # The newest first: each hands what it has recorded to the one before.
            for checkpoint in reversed([each for each in found if each.getName().startswith(_PREFIX)]):
                try:
                    checkpoint.delete(0 if domain.isActive() else libvirt.VIR_DOMAIN_CHECKPOINT_DELETE_METADATA_ONLY)
                except libvirt.libvirtError:
                    # QEMU was killed, and the bitmap is lost.
                    checkpoint.delete(libvirt.VIR_DOMAIN_CHECKPOINT_DELETE_METADATA_ONLY)

        self._connection.call(f"delete the checkpoints of guest {uuid}", delete, again=True)

    # files

    @contextmanager
    def _base(self, uuid: str, name: str) -> Iterator[Base | None]:
        below = qemu_img.layer_below(self._path(uuid, name))
        if below is None:
            yield None
            return
        with served(below.path, below.disk_format, (nbd.ALLOCATION,)) as client:
            yield Base(client)

    def _size(self, uuid: str, name: str) -> int:
        with NbdClient(self._socket(uuid), name) as client:
            return client.size

    def _path(self, uuid: str, name: str) -> Path:
        for folder in (self._disks.folder(uuid), self._disks.stashed_folder(uuid)):
            if (folder / name).exists():
                return folder / name
        return self._disks.folder(uuid) / name

    def _scratch(self, uuid: str, name: str) -> Path:
        return self._disks.directory / f"scratch-{uuid}-{name}"

    def _socket(self, uuid: str) -> Path:
        # The path of a Unix socket may have at most 107 characters.
        short = hashlib.sha256(f"{self._disks.directory}/{uuid}".encode()).hexdigest()[:20]
        return Path(tempfile.gettempdir()) / f"causeway-{short}.socket"

    def _record_path(self, uuid: str) -> Path:
        return self._disks.directory / f"rounds-{uuid}.json"

    def _read(self, uuid: str) -> _Record:
        try:
            return durable.read(self._record_path(uuid), msgspec.json.Decoder(_Record).decode) or _Record()
        except durable.Torn:
            return _Record()

    def _write(self, uuid: str, record: _Record) -> None:
        durable.write(self._record_path(uuid), msgspec.json.encode(record))


def _bitmaps(disk: Path) -> dict[str, bool]:
    """Our bitmaps of a disk -> whether it was saved completely."""
    data = (qemu_img.info(disk).get("format-specific") or {}).get("data", {})
    return {
        each["name"]: "in-use" not in each["flags"]
        for each in data.get("bitmaps", [])
        if each["name"].startswith(_PREFIX)
    }
