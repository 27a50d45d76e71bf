"""Which parts of a disk may have to travel: in whole blocks. It imports nothing, since workers of RBD import it."""

from __future__ import annotations

from collections.abc import Iterable

# Bytes: a cluster of qcow2, and what one bit of a dirty bitmap stands for.
BLOCK = 64 << 10


def joined(extents: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """Sorts extents, widens them to whole blocks and joins those that overlap. ``size``: bytes of the disk."""
    found: list[tuple[int, int]] = []
    for offset, length in sorted(extents):
        start = offset // BLOCK * BLOCK
        end = min(-(-(offset + length) // BLOCK) * BLOCK, size)
        if found and start <= found[-1][0] + found[-1][1]:
            first, known = found[-1]
            found[-1] = (first, max(known, end - first))
        else:
            found.append((start, end - start))
    return found
