"""Base images on a host: nothing gets its name there before it was checked, and no server is made from one that is too large."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from causeway.clients.image import ImageClient
from causeway.compute.disks.image_cache import ImageCache
from causeway.context import RequestContext, admin_context
from causeway.errors import ImageRefused
from causeway.model.image import ImageMeta
from causeway.virt.driver import BaseImage
from tests.security.images.contents import CONTENTS, DISK_FORMATS, MIB, qcow2, vmdk_text

IMAGE = "11111111-2222-3333-4444-555555555555"
GIB = 1 << 30


@dataclass
class Images:
    """An image service with one image."""

    content: bytes
    disk_format: str | None
    downloads: int = 0

    def show_of_server(self, _context: RequestContext, image_id: str) -> ImageMeta:
        return ImageMeta(image_id, disk_format=self.disk_format, size=len(self.content))

    def download(self, context: RequestContext, image_id: str, path: Path, *_given: Any, **_more: Any) -> ImageMeta:
        self.downloads += 1
        path.write_bytes(self.content)
        return self.show_of_server(context, image_id)


def cache_of(folder: Path, images: Images, **options: Any) -> ImageCache:
    return ImageCache(folder / "_base", cast(ImageClient, images), **options)


def names(cache: ImageCache) -> list[str]:
    return sorted(path.name for path in cache.directory.iterdir())


@pytest.mark.parametrize("name", CONTENTS)
def test_an_image_gets_its_name_only_if_it_is_what_the_image_service_says(tmp_path: Path, name: str) -> None:
    content, accepted = CONTENTS[name]
    for said in (*DISK_FORMATS, None):
        cache = cache_of(tmp_path / str(said), Images(content, said))
        if said in accepted:
            found = cache.fetch(admin_context(), IMAGE)
            assert found.path.read_bytes() == content
            assert found.disk_format == ("qcow2" if said == "qcow2" else "raw")
        else:
            with pytest.raises(ImageRefused, match=IMAGE):
                cache.fetch(admin_context(), IMAGE)
            assert names(cache) == []


def test_an_image_of_a_format_that_is_not_allowed_is_not_even_downloaded(tmp_path: Path) -> None:
    images = Images(CONTENTS["ISO"][0], "iso")
    with pytest.raises(ImageRefused, match="disk_format is iso"):
        cache_of(tmp_path, images, allowed=("raw",)).fetch(admin_context(), IMAGE)
    assert images.downloads == 0


def test_what_was_found_outlives_the_process_and_nobody_looks_again(tmp_path: Path) -> None:
    images = Images(qcow2(size=3 * MIB), "qcow2")
    first = cache_of(tmp_path, images).fetch(admin_context(), IMAGE)
    images.disk_format, images.content = None, b""
    cache = cache_of(tmp_path, images)
    assert cache.fetch(admin_context(), IMAGE) == first == BaseImage(cache.path(IMAGE), "qcow2", 3 * MIB)
    assert images.downloads == 1


@pytest.mark.parametrize("note", [None, b"", b"{}", b'{"disk_format":'])
def test_a_file_without_a_note_is_checked_before_it_is_used(tmp_path: Path, note: bytes | None) -> None:
    """Release 0.1.0 let qemu-img guess, and wrote no note. A note may be torn."""
    content = vmdk_text("/etc/shadow")
    cache = cache_of(tmp_path, Images(content, "raw"))
    cache.path(IMAGE).write_bytes(content)
    if note is not None:
        cache.path(f".{IMAGE}.checked").write_bytes(note)
    assert cache.find(IMAGE) is None
    with pytest.raises(ImageRefused, match="content is vmdk"):
        cache.fetch(admin_context(), IMAGE)
    assert cache.path(IMAGE).exists(), "guests of release 0.1.0 may stand on it"

    good = cache_of(tmp_path / "good", Images(qcow2(), "qcow2"))
    good.path(IMAGE).write_bytes(qcow2())
    assert good.fetch(admin_context(), IMAGE).disk_format == "qcow2"
    assert good.images.downloads == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [GIB + 1, 100 << 40, (1 << 64) - 512])
def test_an_image_bomb_makes_no_disk(tmp_path: Path, size: int) -> None:
    cache = cache_of(tmp_path, Images(qcow2(size=size), "qcow2"))
    with pytest.raises(ImageRefused, match=f"has {size} bytes, and {GIB} are the most"):
        cache.fetch(admin_context(), IMAGE, most_gb=1)
    if size > GIB + 1:
        # A flavor with a disk of 0 means: as large as the image. No host holds this one.
        with pytest.raises(ImageRefused):
            cache.fetch(admin_context(), IMAGE, most_gb=0)


def test_an_image_as_large_as_the_flavor_makes_a_disk(tmp_path: Path) -> None:
    cache = cache_of(tmp_path, Images(qcow2(size=GIB), "qcow2"))
    assert cache.fetch(admin_context(), IMAGE, most_gb=1).virtual_size == GIB
    assert cache.fetch(admin_context(), IMAGE, most_gb=0).virtual_size == GIB
