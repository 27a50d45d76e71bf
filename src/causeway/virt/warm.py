"""What drivers say of the disks of a running guest, round by round, and how the other side puts them together.

A *round* is a disk as it was at one instant: in a first round all of it, in a later one what changed since an earlier round. What
changed since the last round until the guest was off is read from the disk itself (`Driver.open_changes`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field


@dataclass
class RoundDisk:
    """``size``: bytes that the guest sees. Changes are in blocks of ``block`` bytes."""

    name: str
    size: int
    block: int
    #: set if the disk stands on this image, which the target can have, too
    base_image_id: str | None = None


@dataclass
class Round:
    """What `Driver.begin_round` made readable. ``since``: the round whose changes it has; None: it has all."""

    number: int
    since: int | None
    disks: list[RoundDisk] = field(default_factory=list)


class DiskReader(ABC):
    """One disk at one instant."""

    @property
    def scale(self) -> float:
        """Bytes of a real disk that each of these stands for: those of simulated guests are small."""
        return 1.0

    @abstractmethod
    def extents(self) -> list[tuple[int, int]]:
        """(offset, length) of what may have to travel, in order; whole blocks, but for the end of the disk."""

    @abstractmethod
    def read(self, offset: int, length: int) -> bytes: ...

    @abstractmethod
    def is_of_base(self, offset: int, data: bytes) -> bool:
        """Whether the image that the disk stands on has the same there; without one: whether these are zeros."""


class DiskWriter(ABC):
    """A disk that is put together. What was not written is as in the base image."""

    @abstractmethod
    def write(self, offset: int, data: bytes) -> None: ...

    @abstractmethod
    def write_zeros(self, offset: int, length: int) -> None: ...

    @abstractmethod
    def flush(self) -> None:
        """Returns when all of it is on the medium."""
