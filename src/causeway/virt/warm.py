"""The disks of a running guest as they are read round by round, and written at the target.

A *round* is a disk as it was at one instant. The first round has all of the disk, a later one what changed since an earlier
round. What changed between the last round and the end of the guest is read from the disk itself
(`WarmCopyMethods.open_changes`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field


@dataclass
class RoundDisk:
    """A disk of a round. ``size``: bytes that the guest sees. ``block``: bytes of a block; changes come in whole blocks."""

    name: str
    size: int
    block: int
    #: set if the disk stands on this image, and the target may have the image as well
    base_image_id: str | None = None


@dataclass
class Round:
    """What `WarmCopyMethods.begin_round` made readable: what changed since the round ``since``; None: everything."""

    number: int
    since: int | None
    disks: list[RoundDisk] = field(default_factory=list)


class DiskReader(ABC):
    """Reads one disk as it was at one instant."""

    @property
    def scale(self) -> float:
        """For how many bytes of a real disk each byte stands: the disks of simulated guests are small."""
        return 1.0

    @abstractmethod
    def extents(self) -> list[tuple[int, int]]:
        """(offset, length) in bytes of what may have to travel, in order. Whole blocks, except at the end of the disk."""

    @abstractmethod
    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fills the buffer with what the disk has from ``offset`` on."""

    def read(self, offset: int, length: int) -> bytes:
        found = bytearray(length)
        self.read_into(offset, memoryview(found))
        return bytes(found)

    @abstractmethod
    def is_of_base(self, offset: int, data: memoryview) -> bool:
        """Whether the image below the disk has the same ``data`` at ``offset``. Without an image: whether it is all zeros."""


class DiskWriter(ABC):
    """Writes a disk. What is never written is as in the base image."""

    @abstractmethod
    def write(self, offset: int, data: memoryview) -> None: ...

    @abstractmethod
    def write_zeros(self, offset: int, length: int) -> None: ...

    @abstractmethod
    def flush(self) -> None:
        """Returns when everything written is on the medium."""


# So many bytes are looked at first: most blocks that are no zeros show it there.
_FIRST = 64


def is_zeros(data: memoryview) -> bool:
    """Whether a block is all zeros. Python compares views byte by byte, and copies of them at once."""
    return not any(data[:_FIRST]) and data.tobytes() == bytes(len(data))
