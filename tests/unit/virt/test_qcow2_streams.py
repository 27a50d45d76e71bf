"""An image that is written while its disk changes is one that QEMU takes, and has what the disk has in the end."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from causeway.virt.qcow2 import CLUSTER, Image, clusters_of, disk_of, pieces_of

SIZES = [512, CLUSTER, 3 * CLUSTER + 512, 530 << 20]


def written(path: Path, disk: bytearray, extents: list[tuple[int, int]], changed: list[tuple[int, int]]) -> None:
    """``disk``: without what changed, which is put into it meanwhile."""

    def cluster(number: int) -> bytes:
        return bytes(disk[number * CLUSTER : (number + 1) * CLUSTER]).ljust(CLUSTER, b"\0")

    image = Image(len(disk), extents)
    with path.open("wb") as file:
        file.write(image.header())
        file.writelines(cluster(number) for number in clusters_of(extents))
        assert file.tell() == image.known_bytes
        for offset, length in changed:
            disk[offset : offset + length] = random.Random(offset).randbytes(length)
        file.writelines(image.tables(changed))
        file.writelines(cluster(number) for number in clusters_of(changed))
        assert file.tell() == image.known_bytes


def some(size: int, seed: int, count: int) -> list[tuple[int, int]]:
    """Extents in order, without overlaps, each not empty."""
    chosen = random.Random(seed)
    ends = sorted(chosen.sample(range(size + 1), min(2 * count, size + 1) // 2 * 2))
    return [(start, min(end - start, 3 * CLUSTER + 77)) for start, end in zip(ends[::2], ends[1::2], strict=True)]


@pytest.mark.skipif(shutil.which("qemu-img") is None, reason="needs qemu-img")
@pytest.mark.parametrize(
    ("size", "first", "then"),
    [*((size, *counts) for size in SIZES[:-1] for counts in ((0, 0), (9, 0), (0, 9), (40, 30))), (SIZES[-1], 30, 200)],
)
def test_qemu_takes_an_image_whose_disk_changed_meanwhile(tmp_path: Path, size: int, first: int, then: int) -> None:
    disk, extents, changed = bytearray(size), some(size, 1, first), some(size, 2, then)
    for offset, length in extents:
        disk[offset : offset + length] = random.Random(-offset).randbytes(length)
    written(tmp_path / "image", disk, extents, changed)
    checked = subprocess.run(["qemu-img", "check", "-f", "qcow2", tmp_path / "image"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    (tmp_path / "disk").write_bytes(disk)
    found = disk_of((tmp_path / "image").read_bytes())
    assert found == bytes(disk) if size < SIZES[-1] else found is None
    compared = subprocess.run(
        ["qemu-img", "compare", "-f", "raw", "-F", "qcow2", tmp_path / "disk", tmp_path / "image"],
        capture_output=True,
        text=True,
    )
    assert compared.returncode == 0, compared.stdout + compared.stderr


def test_a_cluster_is_counted_once() -> None:
    assert list(clusters_of([(0, 1), (5, CLUSTER), (3 * CLUSTER, CLUSTER), (4 * CLUSTER - 1, 1)])) == [0, 1, 3]


def test_clusters_that_follow_on_one_another_are_read_together() -> None:
    extents = [(0, 1), (CLUSTER, 20 * CLUSTER), (30 * CLUSTER, 5)]
    found = list(pieces_of(extents))
    assert found == [(0, 16 * CLUSTER), (16 * CLUSTER, 5 * CLUSTER), (30 * CLUSTER, CLUSTER)]
    assert list(pieces_of([])) == []
