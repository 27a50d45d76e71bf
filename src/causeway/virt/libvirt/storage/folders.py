"""The folders of guests on one host: all that a guest has there beside its disks, wherever these are.

::

    INSTANCES/UUID/disk.config     config drive (ISO 9660, label config-2)
    INSTANCES/UUID/console.log     what the guest wrote to its serial console
    INSTANCES/UUID/memory, nvram.fd, ...  see `saved_memory` and `kept_files`
    INSTANCES/UUID_resize/         the same, stashed by a move
    INSTANCES/owner                the name of the host (`causeway.virt.folder_owner`)
    INSTANCES/export-UUID-*        a copy of a disk that is being sent
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from causeway import durable
from causeway.virt.libvirt.commands import run

_STASHED = "_resize"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CONSOLE_TAIL = 100 * 1024
_CONSOLE_LIMIT = 4 * 2**20


@dataclass
class InstanceFolders:
    """The folders in ``directory``. ``timeout``: seconds for whatever reads or writes a whole disk, or a guest's memory."""

    directory: Path
    timeout: float
    #: copies that this process uses. An image is still uploaded when its guest is not locked any more, and may move.
    _exports: set[Path] = field(default_factory=set, repr=False)

    def folder(self, uuid: str) -> Path:
        return self.directory / uuid

    def stashed_folder(self, uuid: str) -> Path:
        return self.directory / f"{uuid}{_STASHED}"

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

    def make_folder(self, uuid: str) -> None:
        durable.make_folder(self.folder(uuid))

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

    @contextmanager
    def new_export(self, uuid: str, name: str) -> Iterator[Path]:
        """The path of a copy that will be sent. The file is deleted in the end."""
        self.delete_stale_exports(uuid, name)
        path = self.directory / f"export-{uuid}-{name}-{uuid4().hex}.qcow2"
        self._exports.add(path)
        try:
            yield path
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


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _CONSOLE_TAIL))
        return file.read()
