"""The disks of guests on one host.

::

    INSTANCES/UUID/disk            root disk, qcow2, on the base image if there is one
    INSTANCES/UUID/disk.eph0       ephemeral disk; disk.swap: swap (see `blank_disks`)
    INSTANCES/UUID/disk.rescue     what the guest boots while it is rescued, on the rescue image
    INSTANCES/UUID/disk.info       the id of the base image (JSON)
    INSTANCES/UUID/disk.config     config drive (ISO 9660, label config-2)
    INSTANCES/UUID/console.log     what the guest wrote to its serial console
    INSTANCES/UUID_resize/         the same, stashed by a move
    INSTANCES/owner                the name of the host (`causeway.virt.folder_owner`)
    INSTANCES/export-UUID-*.qcow2  a copy of a disk that is being sent

A file is made under another name and renamed when it is complete, so a file named ``disk`` is always complete.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import uuid as uuids
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from causeway import durable
from causeway.errors import DiskTransferFailed, GuestFailed, ImageRefused
from causeway.model.image import QCOW2
from causeway.virt import image_formats
from causeway.virt.driver import RESCUE_DISK, ROOT_DISK, SWAP_DISK, BaseImage, DiskExport, RootDisk
from causeway.virt.libvirt.commands import run
from causeway.virt.libvirt.storage import qemu_img

_GIB = 2**30
_STASHED = "_resize"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CONSOLE_TAIL = 100 * 1024
_CONSOLE_LIMIT = 4 * 2**20


@dataclass
class InstanceDisks:
    """The disks in ``directory``. ``timeout``: seconds for whatever reads or writes a whole disk."""

    directory: Path
    timeout: float
    #: copies that this process uses. An image is still uploaded when its guest is not locked any more, and may move.
    _exports: set[Path] = field(default_factory=set, repr=False)

    def folder(self, uuid: str) -> Path:
        return self.directory / uuid

    def stashed_folder(self, uuid: str) -> Path:
        return self.directory / f"{uuid}{_STASHED}"

    def root(self, uuid: str) -> Path:
        return self.folder(uuid) / "disk"

    def rescue(self, uuid: str) -> Path:
        return self.folder(uuid) / RESCUE_DISK

    def console_log(self, uuid: str) -> Path:
        return self.folder(uuid) / "console.log"

    def by_uuid(self) -> dict[str, bool]:
        """uuid -> whether its disks are stashed (with both kinds: True)."""
        found: dict[str, bool] = {}
        for path in self.directory.iterdir() if self.directory.exists() else ():
            uuid = path.name.removesuffix(_STASHED)
            if _UUID.fullmatch(uuid) and path.is_dir():
                found[uuid] = found.get(uuid, False) or path.name.endswith(_STASHED)
        return found

    def room(self, *, over_commit: bool) -> int:
        """Bytes that are free. Without over-commit, minus what the disks on this host may still grow by."""
        free: int = shutil.disk_usage(self.directory).free
        if over_commit:
            return free
        for path in self.directory.glob("*/disk*"):
            if path.name in (ROOT_DISK, SWAP_DISK, RESCUE_DISK) or path.name.startswith("disk.eph"):
                info = qemu_img.info(path)
                free -= max(0, int(info["virtual-size"]) - int(info["actual-size"]))
        return free

    def make_folder(self, uuid: str) -> None:
        durable.make_folder(self.folder(uuid))

    def create_root(self, uuid: str, wanted: RootDisk) -> None:
        """Makes the root disk as `RootDisk` says. A disk that exists stays, unless there is a snapshot. May be repeated.

        Raises `GuestFailed` if the base image is missing, `DiskTransferFailed` if the snapshot is, and `ImageRefused` if it is
        not what it was said to be, or larger than the server's disk may be.
        """
        self.make_folder(uuid)
        disk = self.root(uuid)
        received = disk.with_name("disk.received")
        if wanted.snapshot is not None and wanted.snapshot.exists():
            take(wanted.snapshot, wanted.snapshot_format, received, self.timeout, most=self.most_bytes(wanted))
        if received.exists():
            self._settle(received, wanted)
            self._write_info(uuid, wanted)
            durable.settle(received, disk)
        elif disk.exists():
            # Perhaps a process was killed right after it had given the disk its name.
            durable.sync(disk.parent)
        elif wanted.snapshot is not None:
            raise DiskTransferFailed(f"The root disk of server {uuid} was not received.", details=str(wanted.snapshot))
        elif wanted.base is not None:
            partial = disk.with_name("disk.partial")
            qemu_img.create(partial, max(wanted.size_gb * _GIB, wanted.base.virtual_size), _existing(wanted.base))
            self._write_info(uuid, wanted)
            durable.settle(partial, disk)
        else:
            raise GuestFailed(f"Server {uuid} has neither an image nor a snapshot to make its root disk from.")

    def create_empty(self, uuid: str, name: str, size: int, root: RootDisk | None) -> None:
        """Makes a disk of exactly ``size`` bytes, empty or on the base image of ``root``. Replaces an existing disk."""
        disk = self.folder(uuid) / name
        partial = disk.with_name(f"{name}.partial")
        base = None
        if root is not None and root.base is not None:
            base = _existing(root.base)
            self._write_info(uuid, root)
        qemu_img.create(partial, size, base)
        durable.settle(partial, disk)

    def create_rescue(self, uuid: str, base: BaseImage) -> None:
        """Makes the rescue disk on the image ``base``. A guest that uses a former one keeps that file, which has no name then."""
        partial = self.rescue(uuid).with_name(f"{RESCUE_DISK}.partial")
        qemu_img.create(partial, base.virtual_size, _existing(base))
        durable.settle(partial, self.rescue(uuid))

    def check_layers(self, uuid: str) -> None:
        """Raises `GuestFailed` if a disk of the server stands on a file whose format is not known, as from release 0.1.0."""
        for path in (self.root(uuid), self.rescue(uuid)):
            if path.exists():
                qemu_img.layer_below(path)

    def base_image_id(self, uuid: str) -> str | None:
        """The id of the image below the root disk; None: it was not recorded, or the disk stands alone."""
        found: str | None = self._read_info(self.folder(uuid)).get("base_image_id")
        return found

    def write_config_drive(self, uuid: str, files: dict[str, bytes]) -> None:
        if not files:
            return
        with tempfile.TemporaryDirectory(prefix="config-drive-") as name:
            for path, content in files.items():
                target = Path(name) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            partial = self.folder(uuid) / "disk.config.partial"
            options = ("-quiet", "-J", "-r", "-l", "-ldots", "-allow-lowercase", "-allow-multidot", "-V", "config-2")
            run("genisoimage", *options, "-o", partial, name)
            durable.settle(partial, self.folder(uuid) / "disk.config")

    def config_drive(self, uuid: str) -> Path | None:
        path = self.folder(uuid) / "disk.config"
        return path if path.exists() else None

    def console_output(self, uuid: str) -> bytes:
        """The last 100 KiB of the guest's console, also if its disks are stashed."""
        for path in (self.console_log(uuid), self.stashed_folder(uuid) / "console.log"):
            if path.exists():
                return _tail(path)
        return b""

    def shorten_console(self, uuid: str) -> None:
        """Cuts a long console log down to its end. Called only while no guest writes to it."""
        path = self.console_log(uuid)
        if path.exists() and path.stat().st_size > _CONSOLE_LIMIT:
            durable.write(path, _tail(path))

    # of a move

    @contextmanager
    def export(self, uuid: str, name: str, *, image_ref: str, flatten: bool) -> Iterator[DiskExport]:
        """A copy of a disk: what differs from its base image, or (``flatten``) everything.

        The copy names no backing file, because image services refuse images that do. ``image_ref``: the server's image, in case
        the base image was not recorded. Raises `GuestFailed` if there is no such disk.
        """
        folder = next((path for path in (self.folder(uuid), self.stashed_folder(uuid)) if (path / name).exists()), None)
        if folder is None:
            raise GuestFailed(f"Server {uuid} has no disk '{name}' on this host.")
        disk = folder / name
        self.delete_stale_exports(uuid, name)
        base = qemu_img.layer_below(disk)
        base_image_id = self._read_info(folder).get("base_image_id") or image_ref or None
        if flatten or base is None or name != ROOT_DISK:
            base_image_id = None
        handle, copy_name = tempfile.mkstemp(dir=self.directory, prefix=f"export-{uuid}-{name}-", suffix=".qcow2")
        os.close(handle)
        copy = Path(copy_name)
        self._exports.add(copy)
        try:
            qemu_img.copy(disk, copy, base if base_image_id is not None else None, self.timeout)
            yield DiskExport(name, copy, "qcow2", copy.stat().st_size, base_image_id)
        finally:
            copy.unlink(missing_ok=True)
            self._exports.discard(copy)

    def base_image_of(self, uuid: str, image_ref: str) -> str | None:
        """The id of the image below the root disk; None: the disk stands alone. ``image_ref``: see `export`."""
        if qemu_img.layer_below(self.root(uuid)) is None:
            return None
        return self._read_info(self.folder(uuid)).get("base_image_id") or image_ref or None

    @contextmanager
    def export_beside_guest(self, uuid: str, name: str, copy: Callable[[Path, Path], None]) -> Iterator[DiskExport]:
        """A copy of a disk that a guest uses. ``copy(disk, target)`` writes all of it to the file ``target``."""
        self.delete_stale_exports(uuid, name)
        path = self.directory / f"export-{uuid}-{name}-{uuids.uuid4().hex}.qcow2"
        self._exports.add(path)
        try:
            copy(self.folder(uuid) / name, path)
            yield DiskExport(name, path, "qcow2", path.stat().st_size)
        finally:
            path.unlink(missing_ok=True)
            self._exports.discard(path)

    def is_exported(self, path: Path) -> bool:
        """Whether this process uses the file as an export."""
        return path in self._exports

    def delete_stale_exports(self, uuid: str = "*", name: str = "*") -> None:
        """Deletes exports of a process that was killed."""
        for stale in self.directory.glob(f"export-{uuid}-{name}-*"):
            if stale not in self._exports:
                stale.unlink(missing_ok=True)

    def stash(self, uuid: str) -> None:
        if self.folder(uuid).exists() and not self.stashed_folder(uuid).exists():
            durable.sync_tree(self.folder(uuid))
            durable.rename(self.folder(uuid), self.stashed_folder(uuid))
        elif self.directory.exists():
            # Already stashed, perhaps by a process that was killed before it synced the directory.
            durable.sync(self.directory)

    def restore(self, uuid: str) -> None:
        if not self.stashed_folder(uuid).exists():
            if self.directory.exists():
                durable.sync(self.directory)
            return
        folder = self.folder(uuid)
        if any((folder / disk).exists() for disk in (ROOT_DISK, SWAP_DISK)) or any(folder.glob("disk.eph*")):
            raise GuestFailed(f"The disks of server {uuid} can't be put back: others are in their place.")
        # A folder without disks belongs to an attempt, or to a guest whose root disk is a volume.
        if folder.exists():
            durable.delete_tree(folder)
        durable.rename(self.stashed_folder(uuid), folder)

    def delete_stashed(self, uuid: str) -> None:
        self._delete(self.stashed_folder(uuid))

    def delete(self, uuid: str) -> None:
        self._delete(self.folder(uuid))

    def _delete(self, folder: Path) -> None:
        try:
            durable.delete_tree(folder)
        except OSError as error:
            raise GuestFailed("The disks of the server could not be deleted.", details=str(error)) from error

    def _settle(self, received: Path, wanted: RootDisk) -> None:
        """Puts a received disk on this host's base image and grows it. May be repeated."""
        base = None if wanted.base is None else _existing(wanted.base)
        qemu_img.settle_foreign(received, base, wanted.size_gb * _GIB)

    def most_bytes(self, root: RootDisk) -> int:
        """The most bytes of a root disk that arrives from elsewhere."""
        return image_formats.most_bytes(root.size_gb, self.directory)

    def _write_info(self, uuid: str, wanted: RootDisk) -> None:
        path = self.folder(uuid) / "disk.info"
        durable.write(path, json.dumps({"base_image_id": wanted.base_image_id if wanted.base else None}))

    def _read_info(self, folder: Path) -> dict[str, Any]:
        try:
            return durable.read(folder / "disk.info", _object) or {}
        except durable.Torn:
            # Callers then use the server's own image, which is right unless the server was rebuilt.
            return {}


def _object(content: bytes) -> dict[str, Any]:
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


def take(snapshot: Path, snapshot_format: str, received: Path, timeout: float, *, most: int) -> None:
    """Checks a received disk and moves it to ``received``. A file with that name is complete and safe. ``timeout``: seconds.

    A file with more than one name is copied, not moved: the guest will write to the disk, and the other name belongs to somebody
    else (the offer of a move to the same host, which a later attempt takes again).

    Raises `ImageRefused` unless it is qcow2, as every disk that this driver sends, names no other file, and has at most ``most``
    bytes.
    """
    what = "A disk that was received"
    if snapshot_format != QCOW2:
        raise ImageRefused(f"{what} was refused: hosts send qcow2, not {snapshot_format}.", details=str(snapshot))
    found = image_formats.inspect(snapshot, QCOW2, what)
    image_formats.check_size(what, found.virtual_size, most)
    facts = snapshot.stat()
    if facts.st_nlink == 1 and facts.st_dev == received.parent.stat().st_dev:
        durable.settle(snapshot, received)
        return
    partial = received.with_suffix(".partial")
    run("cp", "--reflink=auto", "--sparse=always", snapshot, partial, timeout=timeout)
    durable.settle(partial, received)
    snapshot.unlink()


def _existing(base: BaseImage) -> BaseImage:
    if not base.path.exists():
        raise GuestFailed("An image that a root disk needs is not on this host.", details=str(base.path))
    return base


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _CONSOLE_TAIL))
        return file.read()
