"""How much another host may send of a server: what its flavors say, and what files need beside their content.

Whoever receives stops there, whatever the sender says. So a compromised host can't fill the disk of one that its servers move to.
"""

from __future__ import annotations

import re

from causeway.errors import DiskTransferFailed
from causeway.model.instance import Instance
from causeway.model.warm import CopiedDisk
from causeway.virt.driver import KEPT_STATE, MEMORY, ROOT_DISK, SWAP_DISK

_MIB, _GIB = 1 << 20, 1 << 30
_EPHEMERAL = re.compile(r"disk\.eph\d{1,3}")
# State of firmware and TPM.
_MOST_STATE = 64 * _MIB
# Video memory, the devices' own state, and the definition of the guest.
_BESIDE_MEMORY = 512 * _MIB
# A root disk of 0 GiB is as large as its image, whose size the records may not have.
_LARGEST_IMAGE = 16 << 40
# Bytes of a block whose changes are counted.
_BLOCKS = range(512, 64 * _MIB + 1)


def most_bytes(instance: Instance, name: str) -> int:
    """The most bytes of a file that carries one of the server's disks, its memory or its firmware; 0: it has no such thing."""
    flavors = [each for each in (instance.flavor, instance.new_flavor, instance.old_flavor) if each is not None]
    if name == KEPT_STATE:
        return _MOST_STATE
    if name == MEMORY:
        return max(flavor.memory_mb for flavor in flavors) * _MIB * 9 // 8 + _BESIDE_MEMORY
    if name == ROOT_DISK:
        return _file_of(max(flavor.root_gb for flavor in flavors) * _GIB or _LARGEST_IMAGE)
    if name == SWAP_DISK:
        return _file_of(max(flavor.swap for flavor in flavors) * _MIB)
    if _EPHEMERAL.fullmatch(name):
        return _file_of(max(flavor.ephemeral_gb for flavor in flavors) * _GIB)
    return 0


def _file_of(size: int) -> int:
    """A disk as a file: its tables and headers, or the heads of the pieces in which changes travel, add to its content."""
    return size + size // 8 + 64 * _MIB if size else 0


def check(instance: Instance, name: str, size: int) -> None:
    """Raises DiskTransferFailed if a file is said to have more bytes than it can have."""
    most = most_bytes(instance, name)
    if not 0 <= size <= most:
        raise DiskTransferFailed(
            f"What the source would send of server {instance.uuid} is refused: it is no disk of the server, or too large.",
            details=f"{name[:80]!r} of {size} bytes; at most {most}",
        )


def check_copied(instance: Instance, disk: CopiedDisk) -> None:
    """Raises DiskTransferFailed if a disk that is copied while its guest runs is none of the server's, or too large."""
    check(instance, disk.name, disk.size)
    if disk.block not in _BLOCKS or not 0 <= disk.parts <= disk.size // disk.block + 1:
        raise DiskTransferFailed(
            f"What the source would send of server {instance.uuid} is refused: its parts can't be right.",
            details=f"{disk.name[:80]!r}: {disk.parts} parts, blocks of {disk.block} bytes",
        )
