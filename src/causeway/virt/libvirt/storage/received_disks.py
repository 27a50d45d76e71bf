"""Disks that came from other hosts, as files: they are checked before anything opens them."""

from __future__ import annotations

import errno
from pathlib import Path

from causeway import durable
from causeway.errors import ImageRefused
from causeway.model.image import QCOW2
from causeway.virt import image_formats
from causeway.virt.libvirt.commands import run


def take(snapshot: Path, snapshot_format: str, received: Path, timeout: float, *, most: int) -> None:
    """Checks a received disk and moves it to ``received``. A file with that name is complete and safe. ``timeout``: seconds.

    A file of another mount is copied. So is a file with more than one name: the guest will write to the disk, and the other name
    belongs to somebody else (the offer of a move to the same host, which a later attempt takes again).

    Raises `ImageRefused` unless it is qcow2, as every disk that this driver sends, names no other file, and has at most ``most``
    bytes.
    """
    what = "A disk that was received"
    if snapshot_format != QCOW2:
        raise ImageRefused(f"{what} was refused: hosts send qcow2, not {snapshot_format}.", details=str(snapshot))
    found = image_formats.inspect(snapshot, QCOW2, what)
    image_formats.check_size(what, found.virtual_size, most)
    if snapshot.stat().st_nlink == 1 and _is_moved(snapshot, received):
        return
    partial = received.with_suffix(".partial")
    run("cp", "--reflink=auto", "--sparse=always", snapshot, partial, timeout=timeout)
    durable.settle(partial, received)
    snapshot.unlink()


def _is_moved(snapshot: Path, received: Path) -> bool:
    """Moves a file; False: its folder is another mount, though it may be of the same file system."""
    try:
        durable.settle(snapshot, received)
    except OSError as failure:
        if failure.errno != errno.EXDEV:
            raise
        return False
    return True
