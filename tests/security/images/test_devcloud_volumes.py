"""The volume service for development makes volumes of images, with qemu-img too: it checks them in the same way."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from causeway.devcloud.volume import files
from tests.security.images.contents import CONTENTS, DISK_FORMATS, MIB, vmdk_text

pytestmark = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")


@pytest.mark.parametrize("name", CONTENTS)
def test_a_volume_is_made_only_of_an_image_that_is_what_it_says(tmp_path: Path, name: str) -> None:
    content, accepted = CONTENTS[name]
    source, target = tmp_path / "image", tmp_path / "volume"
    source.write_bytes(content)
    for said in DISK_FORMATS:
        if said in accepted and said != "qcow2":
            files.convert(source, target, said, 1)
            assert target.stat().st_size == 1 << 30
            target.unlink()
        elif said not in accepted:
            with pytest.raises(OSError, match="was refused"):
                files.convert(source, target, said, 1)
            assert not target.exists()


def test_nothing_of_a_file_that_an_image_names_is_in_the_volume(tmp_path: Path) -> None:
    secret, source, target = tmp_path / "secret", tmp_path / "image", tmp_path / "volume"
    secret.write_bytes(b"of this host".ljust(MIB, b"\0"))
    source.write_bytes(vmdk_text(secret))
    for said in DISK_FORMATS:
        with pytest.raises(OSError, match="was refused"):
            files.convert(source, target, said, 1)
        assert not target.exists()


@pytest.mark.parametrize(("size", "fits"), [(MIB, True), (1 << 30, True), ((1 << 30) + 512, False), (100 << 40, False)])
def test_an_image_that_is_larger_than_the_volume_is_refused(tmp_path: Path, size: int, fits: bool) -> None:
    source, target = tmp_path / "image", tmp_path / "volume"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(source), str(size)], check=True)
    if fits:
        files.convert(source, target, "qcow2", 1)
        assert target.stat().st_size == 1 << 30
        return
    with pytest.raises(OSError, match=f"{size} bytes"):
        files.convert(source, target, "qcow2", 1)
    assert not target.exists()
