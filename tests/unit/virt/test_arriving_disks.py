"""Disks that arrive in a store: noted before they are there, nobody's until they are complete, and a guest's exactly once."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from causeway.errors import GuestFailed
from causeway.model.shared_disk import SharedDisk
from causeway.virt.driver import DiskCopy
from causeway.virt.shared_disks import arriving
from causeway.virt.shared_disks.folder_store import FolderStore
from causeway.virt.shared_disks.ownership import SharedDisks

UUID = "5f5b6a3e-8b0e-4a36-9c39-1f6d2f4a9d11"
MOVE = "0e1a2b3c-4d5e-6f70-8192-a3b4c5d6e7f8"
NAME = f"{UUID}_disk.arriving.0e1a2b3c"


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    made = FolderStore(tmp_path / "store", lambda path: path.stat().st_size, lambda _name: [], lambda _users: None)
    made.start()
    return made


@pytest.fixture
def copy(tmp_path: Path) -> DiskCopy:
    folder = tmp_path / f"{MOVE}.{UUID}"
    folder.mkdir()
    return DiskCopy(folder / "disk", MOVE, UUID, 7)


def arrived(store: FolderStore, copy: DiskCopy) -> str:
    name = arriving.begin(store, copy)
    store.path(name).write_text("content")
    return name


def test_a_copy_is_named_after_its_server_and_its_move_and_keeps_that_name(store: FolderStore, copy: DiskCopy) -> None:
    assert arrived(store, copy) == NAME
    assert arriving.begin(store, copy) == NAME
    assert arriving.named_in(copy.path) == NAME
    assert store.path(NAME).read_text() == "content"


def test_what_an_attempt_left_whose_note_was_lost_is_not_taken_for_a_part_of_the_copy(
    store: FolderStore, copy: DiskCopy
) -> None:
    arrived(store, copy)
    copy.path.unlink()
    arriving.begin(store, copy)
    assert store.find(NAME) is None


def test_there_is_a_copy_only_while_the_store_has_it(store: FolderStore, copy: DiskCopy) -> None:
    assert not arriving.exists(store, copy.path)
    arrived(store, copy)
    assert arriving.exists(store, copy.path)
    store.remove(NAME)
    assert not arriving.exists(store, copy.path)


def test_a_copy_is_deleted_with_its_note_and_that_may_be_repeated(store: FolderStore, copy: DiskCopy) -> None:
    arrived(store, copy)
    for _ in range(2):
        arriving.discard(store, copy.path)
        assert (store.names(), copy.path.exists()) == ([], False)


@pytest.mark.parametrize(
    "content",
    [b"QFI\xfb", b"{}", b'{"name": 7}', b'{"name": "5f5b6a3e_disk"}', b'{"name": "' + b"x" * 5000 + b'.arriving."}'],
    ids=["a disk", "empty", "no name", "a guest's disk", "as large as a disk"],
)
def test_a_file_that_is_no_note_is_the_copy_itself_and_deletes_nothing_in_the_store(
    store: FolderStore, copy: DiskCopy, content: bytes
) -> None:
    copy.path.write_bytes(content)
    store.path("5f5b6a3e_disk").write_text("a guest's")
    assert arriving.named_in(copy.path) is None
    assert arriving.exists(store, copy.path)
    arriving.discard(store, copy.path)
    assert copy.path.read_bytes() == content
    assert store.names() == ["5f5b6a3e_disk"]


@pytest.mark.parametrize("dies_in", ["set_owner", "rename", None])
def test_an_arriving_disk_becomes_the_guest_s_once_whenever_its_host_dies(
    store: FolderStore, copy: DiskCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str | None
) -> None:
    arrived(store, copy)
    disks, folder = SharedDisks(store, "b"), tmp_path / UUID
    if dies_in is not None:
        with monkeypatch.context() as patches:
            patches.setattr(store, dies_in, _die)
            with pytest.raises(KeyboardInterrupt):
                disks.adopt(folder, "disk", NAME)
        # Whatever deletes the copy then deletes all of it.
        assert arriving.exists(store, copy.path)
    for _ in range(2):
        assert disks.adopt(folder, "disk", NAME) == f"{UUID}_disk"
    assert store.names() == [f"{UUID}_disk"]
    assert disks.offered(folder) == {"disk": SharedDisk(store.id, f"{UUID}_disk", "b 1")}
    assert not arriving.exists(store, copy.path)


def test_an_arriving_disk_takes_no_other_disk_s_place(store: FolderStore, copy: DiskCopy, tmp_path: Path) -> None:
    arrived(store, copy)
    store.path(f"{UUID}_disk").write_text("another host's")
    store.set_owner(f"{UUID}_disk", "a 3")
    with pytest.raises(GuestFailed, match="not this guest's"):
        SharedDisks(store, "b").adopt(tmp_path / UUID, "disk", NAME)
    assert store.path(f"{UUID}_disk").read_text() == "another host's"


def test_a_disk_for_a_guest_that_arrives_live_is_made_again_only_if_it_is_the_hosts_own(
    store: FolderStore, tmp_path: Path
) -> None:
    disks, folder = SharedDisks(store, "b"), tmp_path / UUID
    for content in ("first", "second"):
        disks.remake(folder, "disk", partial(_write, store, content))
        assert store.path(f"{UUID}_disk").read_text() == content
    store.set_owner(f"{UUID}_disk", "a 2")
    with pytest.raises(GuestFailed, match="not this guest's"):
        disks.remake(folder, "disk", lambda _name: None)
    assert store.path(f"{UUID}_disk").read_text() == "second"


def _die(*_words: object) -> None:
    raise KeyboardInterrupt


def _write(store: FolderStore, content: str, name: str) -> None:
    store.path(name).write_text(content)
