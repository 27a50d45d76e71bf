"""A host that sends without end: whoever receives stops where what was announced ends, and reads no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from causeway import errors
from causeway.clients.image import ImageClient
from causeway.compute.disks import changes
from causeway.compute.handover import sent_images
from causeway.context import admin_context
from causeway.model.image import ImageMeta
from causeway.model.outcomes import Snapshot
from tests.unit.compute.test_disk_changes import Writer

MIB = 1 << 20


class Endless:
    """An answer of the image service whose body never ends."""

    status_code = 200

    def __init__(self) -> None:
        self.given = 0

    def iter_content(self, size: int) -> Iterator[bytes]:
        while True:
            self.given += size
            assert self.given <= 64 * MIB, "it is read on and on"
            yield b"x" * size

    def close(self) -> None: ...


@pytest.mark.parametrize("size", [1, 3 * MIB])
def test_no_more_of_an_image_is_read_than_it_has(tmp_path: Path, size: int) -> None:
    """A compromised source fills an image with more than it says; its digest would be compared only at the end."""
    answer = Endless()
    images = ImageClient.__new__(ImageClient)
    images._api = SimpleNamespace(call=lambda *_given, **_named: answer)  # type: ignore[assignment]
    sent = ImageMeta("image", size=size, os_hash_algo="sha256", os_hash_value="0" * 64)
    with pytest.raises(errors.ServiceFailed, match="more came"):
        images.download(admin_context(), "image", tmp_path / "disk", image=sent)
    assert answer.given <= size + MIB
    assert list(tmp_path.iterdir()) == []


def test_an_image_of_no_bytes_carries_nothing() -> None:
    """Its size would bound nothing."""
    with pytest.raises(errors.DiskTransferFailed):
        sent_images.expected(Snapshot("image", "raw", 0, sha256="0" * 64))


class Repeating:
    """A stream of changes whose pieces, each of them right, come again and again."""

    def __init__(self, head: bytes, again: bytes) -> None:
        self._left, self._again, self.given = head, again, 0

    def readinto(self, buffer: memoryview, /) -> int:
        while len(self._left) < len(buffer):
            self.given += 1
            assert self.given <= 100, "it is read on and on"
            self._left += self._again
        buffer[:], self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        return len(buffer)


@pytest.mark.parametrize("kind", ["data", "zeros"])
def test_a_round_has_each_place_of_a_disk_once(kind: str) -> None:
    block, size = 4096, 16 * 4096
    digests = changes.Digests(size, block)
    head = changes._HEADER.pack(b"CWCHG2", size, block)
    data = b"x" * block
    piece = changes._PIECE.pack(0, block, changes._ZEROS, changes._NEVER_SENT)
    if kind == "data":
        digest = changes.Digests(size, block).note(0, memoryview(data), changes._blake3)
        piece = changes._PIECE.pack(0, block, changes._DATA, digest) + data
    source = Repeating(head, piece)
    with pytest.raises(errors.DiskTransferBroken):
        changes.apply(source, Writer(bytes(size)), digests, lambda _travelled, _of_disk: None)
    assert source.given <= 2
