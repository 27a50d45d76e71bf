"""The state of a guest's firmware and TPM, in files.

::

    INSTANCES/UUID/nvram            variables of UEFI; nvram-secure: those with the keys of secure boot
    INSTANCES/UUID/tpm/             state of the TPM, while the hypervisor does not know the guest
    SWTPM/UUID/                     the same, in libvirt's own place, while the hypervisor knows the guest

libvirt alone decides where the state of a TPM is. So the state is beside the disks whenever these are stashed, restored or
deleted, and is copied to libvirt's place before the guest is defined. If it is in both places, the one beside the disks counts:
the copying was interrupted, and no guest has used the other one since.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from causeway import durable
from causeway.errors import GuestRefused
from causeway.hardware.firmware import Firmware, of_instance
from causeway.virt import kept_state
from causeway.virt.driver import KEPT_STATE, DiskExport, GuestSpec
from causeway.virt.libvirt.guest_xml.domain_xml import Uefi
from causeway.virt.libvirt.storage.folders import InstanceFolders

#: where libvirt keeps the state of TPMs
SWTPM = Path("/var/lib/libvirt/swtpm")
_TPM = "tpm"
# Version -> the folder that libvirt makes for it.
_FOLDERS = {"1.2": "tpm1.2", "2.0": "tpm2"}
# The end of the name of the file that a TPM must have. Other files belong to a guest that runs or was suspended.
_PERMANENT = ".permall"


@dataclass
class KeptFiles:
    disks: InstanceFolders
    swtpm: Path

    def take(self, spec: GuestSpec, uefi: Uefi | None) -> None:
        """Puts the state that came from another host in its place, if any came. Leaves out what the guest no longer has.

        ``uefi``: that of the guest on this host. Raises `GuestRefused` if its variables have another size than those with which a
        guest begins here: QEMU maps them into the guest's memory.
        """
        if spec.kept_state is None:
            return
        uuid, firmware = spec.instance.uuid, of_instance(spec.instance)
        folder = self.disks.folder(uuid)
        content = {
            name: data for name, data in kept_state.unpack(spec.kept_state).items() if _is_wanted(name, firmware)
        }
        _check_size(uuid, content, uefi)
        durable.make_folder(folder)
        durable.delete_tree(folder / _TPM)
        kept_state.write(folder, content)
        kept_state.note(folder, filter(_is_needed, content))

    def place(self, uuid: str) -> None:
        """Moves the state of the TPM to where libvirt looks for it. Called before the guest is defined."""
        kept = self.disks.folder(uuid) / _TPM
        if not kept.exists():
            return
        place = self.swtpm / uuid
        durable.make_folder(self.swtpm, mode=0o711)
        _copy(kept, place)
        # libvirt makes the content the property of the account that TPMs run as, which must reach it.
        place.chmod(0o711)
        # What is beside the disks counts, so it must never be incomplete: it loses its name before it is deleted.
        placed = kept.with_name(f".{_TPM}.placed")
        durable.delete_tree(placed)
        durable.rename(kept, placed)
        durable.delete_tree(placed)

    def put_beside_disks(self, uuid: str) -> None:
        """Moves the state of the TPM beside the disks. Called when the hypervisor no longer knows the guest."""
        folder, place = self.disks.folder(uuid), self.swtpm / uuid
        if not place.exists():
            return
        if not (folder / _TPM).exists():
            durable.make_folder(folder)
            _copy(place, folder / _TPM)
        durable.delete_tree(place)

    def delete(self, uuid: str) -> None:
        """Deletes the state that is not in the folder of the disks."""
        durable.delete_tree(self.swtpm / uuid)

    @contextmanager
    def export(self, uuid: str) -> Iterator[DiskExport]:
        files, folder = self._files(uuid), self.disks.folder(uuid)
        durable.make_folder(folder)
        kept_state.note(folder, filter(_is_needed, files))
        path = self.disks.directory / f"export-{uuid}-{KEPT_STATE}-{uuid4().hex}"
        try:
            path.write_bytes(kept_state.pack(files))
            yield DiskExport(KEPT_STATE, path, "raw", path.stat().st_size)
        finally:
            path.unlink(missing_ok=True)

    def faults(self, uuid: str, *, stashed: bool = False) -> list[str]:
        """Which files existed when the guest left or arrived, and are missing now."""
        folder = self.disks.stashed_folder(uuid) if stashed else self.disks.folder(uuid)
        return [
            f"{folder / name} is missing or empty"
            for name in kept_state.noted(folder)
            if not self._has(uuid, folder, name)
        ]

    def _has(self, uuid: str, folder: Path, name: str) -> bool:
        places = [folder / name]
        if name.startswith(f"{_TPM}/") and folder == self.disks.folder(uuid):
            places.append(self.swtpm / uuid / name.removeprefix(f"{_TPM}/"))
        return any(path.is_file() and path.stat().st_size > 0 for path in places)

    def _files(self, uuid: str) -> dict[str, Path]:
        folder = self.disks.folder(uuid)
        found = {name: folder / name for name in (kept_state.NVRAM, kept_state.NVRAM_SECURE)}
        tpm = folder / _TPM if (folder / _TPM).exists() else self.swtpm / uuid
        for path in tpm.rglob("*"):
            # Hidden files are locks, or are being written.
            if path.is_file() and not path.name.startswith("."):
                found[f"{_TPM}/{path.relative_to(tpm)}"] = path
        return {name: path for name, path in found.items() if path.is_file() and not path.is_symlink()}


def _check_size(uuid: str, content: Mapping[str, bytes], uefi: Uefi | None) -> None:
    if uefi is None or uefi.nvram.name not in content:
        return
    came, own = len(content[uefi.nvram.name]), uefi.loader.template.stat().st_size
    if came != own:
        raise GuestRefused(
            f"The variables of UEFI that came with server {uuid} are not of the kind of this host's UEFI.",
            details=f"{came} bytes, and {uefi.loader.template} has {own}",
        )


def _links(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if (Path(folder) / name).is_symlink()}


def _is_wanted(name: str, firmware: Firmware) -> bool:
    if not name.startswith(f"{_TPM}/"):
        return kept_state.nvram_of(firmware) is not None
    return firmware.tpm is not None and name.startswith(f"{_TPM}/{_FOLDERS[firmware.tpm.version]}/")


def _is_needed(name: str) -> bool:
    return not name.startswith(_TPM) or name.endswith(_PERMANENT)


def _copy(source: Path, target: Path) -> None:
    """Copies a folder over another one, without links. The copy is complete and synced when it gets its name.

    The folder of a TPM belongs to the account that runs it, which may not read what this process reads.
    """
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(source, partial, ignore=_links)
    durable.sync_tree(partial)
    durable.delete_tree(target)
    durable.rename(partial, target)
