"""What an image is, against what somebody says it is: only what is consistent, allowed and names no other file is accepted."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from causeway.errors import ImageRefused
from causeway.model.image import BOOTABLE_FORMATS
from causeway.virt import image_formats
from tests.security.images.contents import CONTENTS, DISK_FORMATS, MIB, iso, qcow2, vmdk_binary, vmdk_text


@pytest.mark.parametrize("name", CONTENTS)
def test_content_is_accepted_only_as_what_it_is(tmp_path: Path, name: str) -> None:
    content, accepted = CONTENTS[name]
    path = tmp_path / "image"
    path.write_bytes(content)
    for said in (*DISK_FORMATS, None, "", "RAW", "nonsense"):
        if said in accepted:
            found = image_formats.inspect(path, said, "Image X")
            assert found.disk_format == ("qcow2" if said == "qcow2" else "raw")
            assert found.virtual_size == (MIB if said == "qcow2" else len(content))
        else:
            with pytest.raises(ImageRefused, match=r"Image X was refused"):
                image_formats.inspect(path, said, "Image X")


@pytest.mark.parametrize(
    ("name", "allowed"), list(product(("zeros", "qcow2", "ISO"), [("raw",), ("qcow2",), ("iso",), ()]))
)
def test_only_what_the_operator_allows_is_accepted(tmp_path: Path, name: str, allowed: tuple[str, ...]) -> None:
    content, accepted = CONTENTS[name]
    path = tmp_path / "image"
    path.write_bytes(content)
    for said in BOOTABLE_FORMATS:
        if said in accepted and said in allowed:
            image_formats.inspect(path, said, "Image X", allowed)
        else:
            with pytest.raises(ImageRefused):
                image_formats.inspect(path, said, "Image X", allowed)


@pytest.mark.parametrize("size", [100 << 40, (1 << 64) - 1])
def test_a_header_may_say_any_size_and_none_that_is_too_large_is_accepted(tmp_path: Path, size: int) -> None:
    path = tmp_path / "image"
    path.write_bytes(qcow2(size=size))
    found = image_formats.inspect(path, "qcow2", "Image X")
    assert found.virtual_size == size
    with pytest.raises(ImageRefused, match=f"{size} bytes"):
        image_formats.check_size("Image X", found.virtual_size, 1 << 30)
    with pytest.raises(ImageRefused):
        image_formats.check_size("Image X", found.virtual_size, image_formats.most_bytes(0, tmp_path))


def test_the_refusal_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(vmdk_text("/etc/shadow"))
    with pytest.raises(
        ImageRefused, match=r"said to be raw, and its content is vmdk. Make an image with the right disk_format"
    ):
        image_formats.inspect(path, "raw", "Image X")
    with pytest.raises(
        ImageRefused, match=r"disk_format is vmdk, and servers boot only raw, qcow2, iso here. Convert it"
    ):
        image_formats.inspect(path, "vmdk", "Image X")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    base=some.sampled_from(
        [qcow2(), qcow2(backing="/secret"), iso(), vmdk_binary("/secret"), vmdk_text("/secret"), bytes(MIB)]
    ),
    changes=some.lists(some.tuples(some.integers(0, 2047), some.binary(min_size=1, max_size=8)), max_size=12),
    cut=some.integers(0, MIB),
    said=some.sampled_from([*BOOTABLE_FORMATS, "vmdk"]),
)
def test_whatever_a_header_is_it_is_accepted_or_refused(
    tmp_path: Path, base: bytes, changes: list[tuple[int, bytes]], cut: int, said: str
) -> None:
    """No other error leaves the check, and what is accepted as qcow2 names no file and has no key."""
    content = bytearray(base)
    for at, piece in changes:
        content[at : at + len(piece)] = piece
    path = tmp_path / "image"
    path.write_bytes(content[:cut])
    try:
        found = image_formats.inspect(path, said, "Image X")
    except ImageRefused:
        return
    assert found.disk_format == ("qcow2" if said == "qcow2" else "raw")
    if found.disk_format == "qcow2":
        assert content[:4] == b"QFI\xfb" and not any(content[8:16]) and not any(content[32:36])
        assert int.from_bytes(content[4:8]) == 2 or int.from_bytes(content[72:80]) & ~0b1011 == 0
