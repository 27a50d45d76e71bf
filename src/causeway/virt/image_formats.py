"""Says what an image is that came from outside, before any program opens it.

A user, or another host, says the format of an image. Programs that guess it from the content do what the content wants: some
formats name other files of the host. So here the content is compared with what was said (oslo.utils knows the formats), and from
then on the format is named to every program. What a host opens is only ever ``raw`` or ``qcow2``:

=========  ==========================================================  =================
said       what the content may be                                     opened as
=========  ==========================================================  =================
``raw``    anything that looks like no other format; partition tables  ``raw``
           (MBR, GPT) and ISO 9660 are what real disks have
``iso``    ISO 9660, with a partition table or without                 ``raw``
``qcow2``  qcow2 alone: no backing file, no data file, no encryption,  ``qcow2``
           no features that nobody knows
=========  ==========================================================  =================
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from oslo_utils.imageutils import format_inspector

from causeway.errors import ImageRefused
from causeway.model.image import BOOTABLE_FORMATS, ISO, QCOW2, RAW, format_misfit

# Enough for every header: the text of a VMDK may be nearly so long. No image makes us read all of it.
_LOOKED_AT = 2 << 20
_CHUNK = 1 << 20
# Partition tables and file systems of optical disks are read by guests alone.
_ON_DISKS = frozenset(("gpt", "iso"))
# The inspector's name of a check -> what is wrong if it fails.
_UNSAFE = {
    "backing_file": "it names another file that it stands on",
    "data_file": "it names another file that has its data",
    "unknown_features": "it needs features that are not known",
}
_CRYPT_METHOD = slice(32, 36)


@dataclass(frozen=True)
class FoundImage:
    """``disk_format``: what is named to programs, raw or qcow2. ``virtual_size``: bytes of the disk that a guest sees."""

    disk_format: str
    virtual_size: int


def inspect(path: Path, said: str | None, what: str, allowed: Collection[str] = BOOTABLE_FORMATS) -> FoundImage:
    """Compares the content of a file with the format that somebody said it has. ``what``: begins sentences, as in "Image X".

    Raises `ImageRefused` if the format is not ``allowed``, the content is something else, or names other files.
    """
    check_allowed(said, what, allowed)
    with path.open("rb") as file:
        found = _recognized(file, what, str(path))
    names = frozenset(found)
    if said == RAW and names <= {RAW, *_ON_DISKS}:
        return FoundImage(RAW, path.stat().st_size)
    if said == ISO and ISO in names and names <= _ON_DISKS:
        return FoundImage(RAW, path.stat().st_size)
    if said == QCOW2 and names == {QCOW2}:
        _check_qcow2(path, found[QCOW2], what)
        return FoundImage(QCOW2, found[QCOW2].virtual_size)
    raise ImageRefused(
        f"{what} was refused: it is said to be {said}, and its content is {' and '.join(sorted(names))}. Make an image with the"
        " right disk_format.",
        details=str(path),
    )


def begins_raw(content: bytes) -> bool:
    """Whether these first bytes of an image may be those of a raw one."""
    try:
        return frozenset(_recognized(io.BytesIO(content), "The image", "")) <= {RAW, *_ON_DISKS}
    except ImageRefused:
        return False


def check_allowed(said: str | None, what: str, allowed: Collection[str]) -> None:
    """Raises `ImageRefused` unless the format is one that this host accepts."""
    if said not in allowed or said not in BOOTABLE_FORMATS:
        raise ImageRefused(f"{what} was refused. {format_misfit(said, allowed)}")


def check_size(what: str, size: int, most: int) -> None:
    """Raises `ImageRefused` if a disk of ``size`` bytes is larger than it may be."""
    if size > most:
        raise ImageRefused(
            f"{what} was refused: as a disk it has {size} bytes, and {most} are the most here. Use a larger flavor or a smaller"
            " image."
        )


def most_bytes(size_gb: int, storage: Path) -> int:
    """The most bytes of a disk that its flavor gives ``size_gb`` GiB; 0 (as large as the image): all that the ``storage`` has."""
    return size_gb << 30 or shutil.disk_usage(storage).total


def _recognized(file: BinaryIO, what: str, details: str) -> dict[str, format_inspector.FileInspector]:
    """Every format that the content looks like; raw only if it looks like no other."""
    try:
        wrapper = format_inspector.InspectWrapper(file)
        left = _LOOKED_AT
        while left > 0 and wrapper.formats is None and (chunk := wrapper.read(_CHUNK)):
            left -= len(chunk)
        wrapper.close()
        return {each.NAME: each for each in wrapper.formats or []}
    except OSError:
        raise
    except Exception as error:
        # Whatever the inspector stumbles over was made to be stumbled over.
        raise ImageRefused(
            f"{what} was refused: its content can't be recognized.",
            details=f"{details}: {type(error).__name__}: {error}",
        ) from error


def _check_qcow2(path: Path, inspector: format_inspector.FileInspector, what: str) -> None:
    faults = []
    try:
        inspector.safety_check()
    except format_inspector.SafetyCheckFailed as failed:
        faults = [_UNSAFE.get(name, name) for name in failed.failures]
    except format_inspector.ImageFormatError as error:
        faults = [f"its header is damaged ({error})"]
    with path.open("rb") as file:
        header = file.read(_CRYPT_METHOD.stop)
    if any(header[_CRYPT_METHOD]):
        faults.append("it is encrypted")
    if faults:
        raise ImageRefused(f"{what} was refused: {'; '.join(faults)}.", details=str(path))
