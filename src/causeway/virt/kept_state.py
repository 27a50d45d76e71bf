"""What a guest's firmware and TPM keep between boots, as one file that travels with its disks.

The file is a map (MessagePack) from the names of files to their contents, some hundred KiB in all. Names are paths below the
folder of the guest's disks. Since the file comes from another host, its names are checked before anything is written.

``kept.json`` in the folder of the disks lists what existed when the guest left or arrived. All of it must exist before the
other copy of the server is deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

import msgspec

from causeway import durable
from causeway.errors import DiskTransferFailed
from causeway.hardware.firmware import Firmware, FirmwareType, SecureBoot

NVRAM, NVRAM_SECURE = "nvram", "nvram-secure"
_LIST = "kept.json"
# The NVRAM, or a file of a TPM.
_NAME = re.compile(r"nvram(-secure)?|tpm[0-9.]*(/[A-Za-z0-9][A-Za-z0-9._-]{0,63}){0,3}")
#: Bytes. The variables of UEFI take half a MiB, a TPM some KiB.
LIMIT = 16 << 20
# A TPM has three or four.
_MOST_FILES = 64


def nvram_of(firmware: Firmware, *, is_secure: bool | None = None) -> str | None:
    """The name of the file with the variables of UEFI; None: the guest has no UEFI.

    Secure boot has a file of its own: variables with its keys are useless without it. ``is_secure``: whether secure boot is on
    (None: it is on if the firmware asks for it).
    """
    if firmware.type is not FirmwareType.UEFI:
        return None
    wants = firmware.secure_boot is not SecureBoot.DISABLED if is_secure is None else is_secure
    return NVRAM_SECURE if wants else NVRAM


def pack(files: Mapping[str, Path]) -> bytes:
    return msgspec.msgpack.encode({name: path.read_bytes() for name, path in sorted(files.items())})


def unpack(path: Path) -> dict[str, bytes]:
    """Raises `DiskTransferFailed` if the file is not what `pack` makes."""
    try:
        if path.stat().st_size > LIMIT:
            raise ValueError(f"{path.stat().st_size} bytes")
        found = msgspec.msgpack.decode(path.read_bytes(), type=dict[str, bytes])
        folders = {str(folder) for name in found for folder in PurePosixPath(name).parents}
        wrong = [name for name in found if not _NAME.fullmatch(name) or name in folders]
        if wrong:
            raise ValueError(f"it names {wrong[0][:80]!r}")
        if len(found) > _MOST_FILES:
            raise ValueError(f"{len(found)} files")
    except (OSError, ValueError) as failure:
        raise DiskTransferFailed(
            "What the firmware and the TPM of the server keep did not arrive as it was sent.", details=str(failure)
        ) from failure
    return found


def write(folder: Path, content: Mapping[str, bytes]) -> None:
    """Writes the files below ``folder``; each is complete and synced."""
    for name, data in content.items():
        durable.make_folder((folder / name).parent)
        durable.write(folder / name, data, mode=0o600)


def note(folder: Path, names: Iterable[str]) -> None:
    """Records which files must exist for the server to run from what is in the folder."""
    durable.write(folder / _LIST, json.dumps(sorted(names)))


def noted(folder: Path) -> list[str]:
    def decode(content: bytes) -> list[str]:
        return msgspec.json.decode(content, type=list[str])

    try:
        return durable.read(folder / _LIST, decode) or []
    except durable.Torn:
        return []
