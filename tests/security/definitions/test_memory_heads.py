"""The head of a memory file decides which program libvirt runs and how much it reads: it is checked, and made anew."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.errors import GuestRefused
from causeway.virt.libvirt.guest_xml.migratable_xml import cookie_for_target, for_target
from causeway.virt.libvirt.storage import save_image
from tests.security.definitions.guests import saved, wanted
from tests.security.definitions.memory_files import MemoryFile

COOKIE = "<cookie><cpu mode='custom' match='exact' check='full'><model>qemu64</model></cpu><slirpHelper/></cookie>"
STREAM = b"QEVM" + bytes(range(256)) * 5000


def adopt(path: Path, own: str = wanted("i440fx")) -> None:
    save_image.adopt(path, lambda foreign: for_target(foreign, own), cookie_for_target)


def test_nothing_of_the_head_stays_as_it_came(tmp_path: Path) -> None:
    came = MemoryFile(saved("i440fx"), COOKIE, STREAM)
    path = came.write(tmp_path / "memory")
    before = path.stat()
    adopt(path)
    found = MemoryFile.read(path)
    assert found.xml == for_target(came.xml, wanted("i440fx"))
    assert found.cookie == cookie_for_target(COOKIE, wanted("i440fx"))
    assert found.stream == STREAM
    assert path.stat().st_size == before.st_size
    content = path.read_bytes()
    assert b"/source/" not in content and b"slirp" not in content
    adopt(path)
    assert path.read_bytes() == content


def test_a_description_that_has_grown_moves_the_stream(tmp_path: Path) -> None:
    """As long paths of this host make it."""
    folder = "/target/" + "/".join(["x" * 200] * 20)
    own = wanted("i440fx").replace("/target/", f"{folder}/")
    path = MemoryFile(saved("i440fx"), COOKIE, STREAM, data_length=len(saved("i440fx")) + len(COOKIE) + 2).write(
        tmp_path / "memory"
    )
    content = path.read_bytes()
    head = len(content) - len(STREAM)
    # Without filling.
    used = 92 + len(saved("i440fx")) + len(COOKIE) + 2
    path.write_bytes(content[:used] + content[head:])
    adopt(path, own)
    found = MemoryFile.read(path)
    assert folder in found.xml and found.stream == STREAM
    assert list(tmp_path.iterdir()) == [path]


WRONG = {
    "another magic": {"magic": b"LibvirtQemudPart"},
    "no magic": {"magic": b"\0" * 16},
    "another version": {"version": 3},
    "another order of bytes": {"version": 2 << 24},
    "gzip": {"compressed": 1},
    "bzip2": {"compressed": 2},
    "xz": {"compressed": 3},
    "lzop": {"compressed": 4},
    "a program of later releases": {"compressed": 77},
    "no description": {"data_length": 0},
    "more description than there is": {"data_length": 1 << 21},
    "all memory of the host": {"data_length": (1 << 32) - 1},
    "a cookie behind the description": {"cookie_at": 1 << 30},
    "a state that is none": {"was_running": 7},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_with_another_head_is_refused_and_stays(tmp_path: Path, case: str) -> None:
    came = replace(MemoryFile(saved("i440fx"), COOKIE, STREAM), **WRONG[case])  # type: ignore[arg-type]
    path = came.write(tmp_path / "memory")
    content = path.read_bytes()
    with pytest.raises(GuestRefused, match="not accepted here"):
        adopt(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("size", [0, 15, 91, 92, 500])
def test_a_file_that_ends_too_early_is_refused(tmp_path: Path, size: int) -> None:
    path = MemoryFile(saved("i440fx"), COOKIE, STREAM).write(tmp_path / "memory")
    os.truncate(path, size)
    with pytest.raises(GuestRefused):
        adopt(path)


@settings(max_examples=200, deadline=None)
@given(at=st.integers(0, 4000), put=st.binary(min_size=1, max_size=40))
def test_bytes_that_are_changed_are_refused_or_replaced(
    tmp_path_factory: pytest.TempPathFactory, at: int, put: bytes
) -> None:
    path = tmp_path_factory.mktemp("memory") / "memory"
    MemoryFile(saved("i440fx"), COOKIE, STREAM).write(path)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(put)
    content = path.read_bytes()
    # Where it begins, the head says.
    stream = content[92 + int.from_bytes(content[20:24], "little") :]
    try:
        adopt(path)
    except GuestRefused:
        return
    found = MemoryFile.read(path)
    assert (found.version, found.compressed, found.magic) == (2, 0, b"LibvirtQemudSave")
    assert found.stream == stream
    assert for_target(found.xml, wanted("i440fx")) == found.xml
