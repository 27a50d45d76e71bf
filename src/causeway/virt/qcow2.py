"""Writes a qcow2 image of a disk from its beginning to its end, while the guest still runs and changes the disk.

::

    header | the disk as it was at one instant | tables | refcount blocks | what changed until the guest was off

The header says where the tables are, so their place must be known before the first byte is sent. It follows from which clusters
the disk has at the beginning: each of them has a fixed place, whatever its content is when it is sent. Which clusters changed
is known only when the guest is off, and the tables are written next. They name the newest copy of each cluster; the older copy
is marked as free.

The format is qemu's docs/interop/qcow2.txt: version 3, clusters of 64 KiB, refcounts of 16 bits, no backing file.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections import deque
from collections.abc import Iterable, Iterator

CLUSTER_BITS = 16
CLUSTER = 1 << CLUSTER_BITS
_HEADER = struct.Struct(">4sIQIIQIIQQIIQQQQII")
_HEADER_BYTES = 104
MAGIC = b"QFI\xfb"
_VERSION, _REFCOUNT_ORDER = 3, 4
# How many entries an L2 table has, and how many refcounts a block.
_L2_ENTRIES = CLUSTER // 8
_BLOCK_ENTRIES = CLUSTER // 2
_PIECE_CLUSTERS = 16
# A flag of an entry: its cluster is used only once.
_COPIED = 1 << 63
_OFFSET = 0x00FF_FFFF_FFFF_FE00

#: (offset, length) on the disk
Extents = list[tuple[int, int]]


def clusters_of(extents: Iterable[tuple[int, int]]) -> Iterator[int]:
    """The numbers of the clusters that ``extents`` touch, in order, each once. ``extents`` must be in order."""
    following = 0
    for offset, length in extents:
        first, behind = offset // CLUSTER, -(-(offset + length) // CLUSTER)
        yield from range(max(first, following), behind)
        following = max(following, behind)


def pieces_of(extents: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """(offset, length) of the clusters that ``extents`` touch. Neighbouring clusters are one piece, up to 1 MiB."""
    first = behind = -1
    for cluster in clusters_of(extents):
        if cluster == behind and behind - first < _PIECE_CLUSTERS:
            behind += 1
            continue
        if first >= 0:
            yield first * CLUSTER, (behind - first) * CLUSTER
        first, behind = cluster, cluster + 1
    if first >= 0:
        yield first * CLUSTER, (behind - first) * CLUSTER


class Image:
    """The layout of an image of a disk of ``size`` bytes that has data in ``extents`` at the beginning."""

    def __init__(self, size: int, extents: Extents) -> None:
        self.size = size
        # number of an L2 table -> for each of its clusters of the disk, the cluster of the file (0: none)
        self._tables: dict[int, array[int]] = {}
        # The end of the file, in clusters; the first is the header.
        self._end = 1
        self._free: list[int] = []
        self._place(extents)
        self._l1_clusters = -(-self._table_count * 8 // CLUSTER)
        self._l1_at = self._end
        # The most that the file can have: each cluster of the disk twice, and the tables.
        most = 2 * -(-size // CLUSTER) + 2 * self._table_count + self._l1_clusters + 2
        self._refcount_table_clusters = -(-_blocks_for(most) * 8 // CLUSTER)

    @property
    def _table_count(self) -> int:
        return max(1, -(-self.size // (_L2_ENTRIES * CLUSTER)))

    @property
    def known_bytes(self) -> int:
        """Bytes of the image, as far as is known by now."""
        return self._end * CLUSTER

    def _place(self, extents: Extents) -> None:
        """Gives each of these clusters of the disk the next place in the file. Its former place, if any, is free."""
        for cluster in clusters_of(extents):
            table = self._tables.setdefault(cluster // _L2_ENTRIES, array("Q", bytes(_L2_ENTRIES * 8)))
            former = table[cluster % _L2_ENTRIES]
            if former:
                self._free.append(former)
            table[cluster % _L2_ENTRIES] = self._end
            self._end += 1

    def header(self) -> bytes:
        fields = _HEADER.pack(
            MAGIC,
            _VERSION,
            0,
            0,
            CLUSTER_BITS,
            self.size,
            0,
            self._table_count,
            self._l1_at * CLUSTER,
            (self._l1_at + self._l1_clusters) * CLUSTER,
            self._refcount_table_clusters,
            0,
            0,
            0,
            0,
            0,
            _REFCOUNT_ORDER,
            _HEADER_BYTES,
        )
        return fields.ljust(CLUSTER, b"\0")

    def tables(self, changed: Extents) -> Iterator[bytes]:
        """All tables; called when the guest is off. ``changed``: the clusters that follow, for the first or second time."""
        for cluster in clusters_of(changed):
            self._tables.setdefault(cluster // _L2_ENTRIES, array("Q", bytes(_L2_ENTRIES * 8)))
        first_at = self._l1_at + self._l1_clusters + self._refcount_table_clusters
        l2_at = {number: first_at + place for place, number in enumerate(sorted(self._tables))}
        blocks_at = first_at + len(l2_at)
        count = sum(1 for _cluster in clusters_of(changed))
        blocks = _blocks_for(blocks_at + count)
        self._end = blocks_at + blocks
        self._place(changed)
        l1 = [(l2_at[number] * CLUSTER) | _COPIED if number in l2_at else 0 for number in range(self._table_count)]
        yield _packed(l1).ljust(self._l1_clusters * CLUSTER, b"\0")
        refcount_table = _packed([(blocks_at + number) * CLUSTER for number in range(blocks)])
        yield refcount_table.ljust(self._refcount_table_clusters * CLUSTER, b"\0")
        for number in sorted(self._tables):
            yield _packed([(at * CLUSTER) | _COPIED if at else 0 for at in self._tables[number]])
        yield from self._refcounts(blocks)

    def _refcounts(self, blocks: int) -> Iterator[bytes]:
        free = deque(sorted(self._free))
        for number in range(blocks):
            first, behind = number * _BLOCK_ENTRIES, min((number + 1) * _BLOCK_ENTRIES, self._end)
            counts = array("H", [1]) * max(0, behind - first)
            while free and free[0] < behind:
                counts[free.popleft() - first] = 0
            if sys.byteorder == "little":
                counts.byteswap()
            yield counts.tobytes().ljust(CLUSTER, b"\0")


def _blocks_for(clusters: int) -> int:
    """How many refcount blocks are needed for so many clusters and for the blocks themselves."""
    blocks = -(-clusters // _BLOCK_ENTRIES)
    while -(-(clusters + blocks) // _BLOCK_ENTRIES) > blocks:
        blocks += 1
    return blocks


def _packed(entries: list[int]) -> bytes:
    return struct.pack(f">{len(entries)}Q", *entries)


def disk_of(image: bytes) -> bytes | None:
    """The disk in an image that has one L2 table at most (512 MiB). None: this is no such image."""
    if len(image) < CLUSTER:
        return None
    fields = _HEADER.unpack_from(image)
    cluster_bits, size, l1_count, l1_at = fields[4], fields[5], fields[7], fields[8]
    if cluster_bits != CLUSTER_BITS or l1_count != 1:
        return None
    (l1_entry,) = struct.unpack_from(">Q", image, l1_at)
    if not l1_entry:
        return bytes(size)
    entries = struct.unpack_from(f">{-(-size // CLUSTER)}Q", image, l1_entry & _OFFSET)
    places = [entry & _OFFSET for entry in entries]
    return b"".join(image[at : at + CLUSTER] if at else bytes(CLUSTER) for at in places)[:size]
