"""The disks of stopped guests, and the memory of saved ones, that other hosts may fetch.

::

    OFFERS/OPERATION.SERVER/disk           a copy of a disk, as the driver exports it
    OFFERS/OPERATION.SERVER/manifest.json  written last: names, sizes, digests, and the secret that opens them

An offer is only files, so it outlives its process: a fetch that a restart broke off continues where it was. The offer ends when
the other host has its guest, at the latest when the move is confirmed or rolled back. Whoever has its secret may read it.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from causeway import durable
from causeway.compute.disks import folders
from causeway.model.outcomes import OfferedDisk
from causeway.virt.driver import DiskExport

LOG = logging.getLogger(__name__)

_MANIFEST = "manifest.json"
_OPERATION = re.compile(r"[0-9a-f-]{36}")


@dataclass
class Manifest:
    """What an offer holds."""

    instance_uuid: str
    secret: str = field(repr=False)
    disks: list[OfferedDisk] = field(default_factory=list)


class DiskOffers:
    """The offers of one host."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        durable.make_folder(directory, mode=0o700)
        # An offer that an earlier process ended does not return after a power cut.
        durable.sync(directory)

    def make(
        self,
        operation_id: str,
        instance_uuid: str,
        names: list[str],
        export: Callable[[str], AbstractContextManager[DiskExport]],
    ) -> Manifest:
        """Offers the named disks for a move. If they were offered before, nothing is copied again."""
        found = self.find(operation_id)
        folder = self._directory / f"{operation_id}.{instance_uuid}"
        if found is not None:
            # The process that made it may have been killed before it synced the names.
            durable.sync(folder)
            durable.sync(self._directory)
            return found
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        manifest = Manifest(instance_uuid, secrets.token_urlsafe(32))
        for name in names:
            with export(name) as made:
                if made.is_kept:
                    link_or_copy(made.path, folder / name)
                else:
                    shutil.move(made.path, folder / name)
                durable.sync(folder / name)
                with (folder / name).open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                size = (folder / name).stat().st_size
                manifest.disks.append(OfferedDisk(name, made.disk_format, size, digest, made.base_image_id, made.scale))
        durable.write(folder / _MANIFEST, msgspec.json.encode(manifest), mode=0o600)
        durable.sync(self._directory)
        return manifest

    def find(self, operation_id: str) -> Manifest | None:
        """What is offered for a move; None: nothing, or not all of it yet."""
        folder = self._folder(operation_id)
        if folder is None:
            return None
        try:
            return durable.read(folder / _MANIFEST, msgspec.json.Decoder(Manifest).decode)
        except durable.Torn:
            # The guest's own disks are still there; the next order offers them anew.
            return None

    def path(self, operation_id: str, name: str) -> Path | None:
        """The file of an offered disk."""
        folder, manifest = self._folder(operation_id), self.find(operation_id)
        if folder is None or manifest is None or name not in {disk.name for disk in manifest.disks}:
            return None
        return folder / name

    def end(self, operation_id: str) -> None:
        """Ends the offer for a move."""
        folder = self._folder(operation_id)
        if folder is not None:
            _remove(folder)

    def end_all(self, instance_uuid: str) -> None:
        """Ends every offer of a server's disks."""
        for folder in folders.of_server(self._directory, instance_uuid):
            _remove(folder)

    def servers(self) -> set[str]:
        """The servers whose disks are offered."""
        return folders.servers(self._directory)

    def _folder(self, operation_id: str) -> Path | None:
        # What comes over the network must not name other files.
        if not _OPERATION.fullmatch(operation_id):
            return None
        return folders.of_operation(self._directory, operation_id)


def link_or_copy(source: Path, target: Path) -> None:
    """Gives a file another name, or copies it to another file system. Nobody may change either."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)


def _remove(folder: Path) -> None:
    # Without the manifest nobody can read it any more.
    (folder / _MANIFEST).unlink(missing_ok=True)
    try:
        durable.delete_tree(folder)
    except OSError as failure:
        LOG.warning("Offered disks could not be deleted: %s", failure)
