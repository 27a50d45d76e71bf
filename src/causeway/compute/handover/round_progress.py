"""Reports the progress of a round."""

from __future__ import annotations

from causeway.model.warm import CopiedDisk, CopyRound
from causeway.virt.driver import Progress


class RoundProgress:
    """Reports how many bytes of a round have travelled, and an estimate of how many travel in all.

    Fewer bytes travel than have changed: zeros and the content of the base image are left out, and the rest may be compressed.
    The estimate supposes that the rest of the round shrinks as much as the part that has travelled.
    """

    def __init__(self, report: Progress, copied: CopyRound) -> None:
        self._report = report
        self._copied = copied
        self._travelled = 0
        # Places in the bytes of all disks: where this host began, where it is now, and where the present part ends.
        self._first: int | None = None
        self._scale = 1.0
        self._place = self._end = 0

    def begin(self, disk: CopiedDisk, part: int) -> None:
        """Begins a part. All parts before it have arrived."""
        before = 0
        for each in self._copied.disks:
            if each.name == disk.name:
                break
            before += each.to_send
        self._place, self._end = (before + disk.to_send * number // disk.parts for number in (part, part + 1))
        self._first = self._place if self._first is None else self._first
        self._scale = disk.scale

    def arrived(self, travelled: int, of_disk: int) -> None:
        """Counts a piece that has arrived: ``travelled`` bytes, which are ``of_disk`` bytes of the disk."""
        self._travelled += round(travelled * self._scale)
        self._place = min(self._place + round(of_disk * self._scale), self._end)
        come = self._place - (self._first or 0)
        left = (self._copied.size - self._place) * self._travelled // come if come else 0
        self._report(self._travelled, self._travelled + left)

    def downloaded(self, done: int, total: int) -> None:
        """Reports progress within the image of the present part, in bytes of the disks: the sizes of other images are unknown."""
        share = (self._end - self._place) * done // total if total else 0
        self._report(self._place + share, self._copied.size)
