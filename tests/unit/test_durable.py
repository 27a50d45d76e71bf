"""What `causeway.durable` writes is whole and synced."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from causeway import durable
from causeway.store.database import Database


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is synced and renamed, in order, by name."""
    seen: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        seen.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        fsync(descriptor)

    def renamed(source: Path, target: Path) -> None:
        seen.append(("rename", Path(target).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    monkeypatch.setattr(Path, "replace", lambda self, target: renamed(self, target))
    return seen


def test_a_record_is_synced_before_it_has_its_name_and_its_name_after(
    tmp_path: Path, done: list[tuple[str, str]]
) -> None:
    path = tmp_path / "records" / "one.json"
    durable.make_folder(path.parent)
    durable.write(path, b"first")
    assert path.read_bytes() == b"first"
    content, rename, name = done[-3:]
    # As long as it is not made it is not known whether the folder above was synced.
    assert done[:2] == [("sync", tmp_path.parent.name), ("sync", tmp_path.name)]
    assert content[0] == "sync" and content[1].startswith(".one.json.")
    assert rename == ("rename", "one.json")
    assert name == ("sync", "records")


def test_permissions_are_kept_or_given(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    durable.write(path, "one", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    durable.write(path, "two")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("two", 0o600)


def test_a_write_that_fails_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.json"
    durable.write(path, b"old")

    def full(_descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        durable.write(path, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["one.json"]
    assert path.read_bytes() == b"old"


def test_a_folder_that_gets_another_name_is_synced_in_both_folders(tmp_path: Path, done: list[tuple[str, str]]) -> None:
    (tmp_path / "a" / "guest").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    durable.rename(tmp_path / "a" / "guest", tmp_path / "b" / "guest_resize")
    assert done == [("rename", "guest_resize"), ("sync", "b"), ("sync", "a")]


class Killed(BaseException):
    """The process ends here."""


def killed_before_the_sync(folder: Path, work: Callable[[], None]) -> None:
    def kill(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink() == folder:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", kill)
        with pytest.raises(Killed):
            work()


@pytest.mark.parametrize("what", ["make_folder", "delete", "delete_tree"])
def test_what_was_done_and_not_synced_is_synced_when_it_is_asked_for_again(
    tmp_path: Path, done: list[tuple[str, str]], what: str
) -> None:
    """The process was killed between the two; whoever relies on the answer of the next one must not lose it."""
    path = tmp_path / "one"
    if what == "delete":
        path.write_text("content")
    elif what == "delete_tree":
        (path / "inside").mkdir(parents=True)
    work: Callable[[Path], None] = getattr(durable, what)
    killed_before_the_sync(tmp_path, lambda: work(path))
    assert path.exists() is (what == "make_folder")
    done.clear()
    work(path)
    assert done == [("sync", tmp_path.name)]


def test_folders_above_that_were_made_and_not_synced_are_synced(tmp_path: Path, done: list[tuple[str, str]]) -> None:
    killed_before_the_sync(tmp_path, lambda: durable.make_folder(tmp_path / "a" / "b"))
    assert (tmp_path / "a").is_dir()
    done.clear()
    durable.make_folder(tmp_path / "a" / "b")
    assert done == [("sync", tmp_path.name), ("sync", "a")]


def test_nothing_is_deleted_where_there_is_nothing(tmp_path: Path) -> None:
    durable.delete(tmp_path / "none" / "file")
    durable.delete_tree(tmp_path / "none" / "folder")


def test_a_folder_in_one_that_is_not_ours_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service's state is often in a folder that it may neither read nor write."""
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != tmp_path.parent)
    real = os.open

    def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
        if Path(path) == tmp_path.parent:
            raise PermissionError(path)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)
    durable.make_folder(tmp_path)
    durable.make_folder(tmp_path / "state")
    assert (tmp_path / "state").is_dir()


def test_what_an_earlier_process_did_not_finish_is_discarded(tmp_path: Path, done: list[tuple[str, str]]) -> None:
    (tmp_path / ".one.json.1.2.new").write_text("half")
    (tmp_path / "one.json").write_text("whole")
    durable.discard_unfinished(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["one.json"]
    # What it renamed or deleted last may not be on the disk yet, and is counted on from now on.
    assert done == [("sync", tmp_path.name)]


@pytest.mark.parametrize(("synchronous", "level"), [(True, 2), (False, 1)])
def test_sqlite_syncs_what_is_committed_unless_an_option_says_otherwise(
    tmp_path: Path, synchronous: bool, level: int
) -> None:
    database = Database(f"sqlite:///{tmp_path}/one.sqlite", "one", synchronous=synchronous)
    with database.write() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == level
    database.close()


def test_a_folder_above_is_synced_once_and_again_when_it_was_made_again(
    tmp_path: Path, done: list[tuple[str, str]]
) -> None:
    above = tmp_path / "above"
    for name in ("a", "b"):
        done.clear()
        durable.make_folder(above / name)
        assert (("sync", tmp_path.name) in done) is (name == "a")
        assert done[-1] == ("sync", "above")
    for away in ("deleted", "renamed"):
        if away == "deleted":
            durable.delete_tree(above)
        else:
            durable.rename(above, tmp_path / "elsewhere")
        above.mkdir()
        done.clear()
        durable.make_folder(above / "c")
        assert done[-2:] == [("sync", tmp_path.name), ("sync", "above")]


def test_a_folder_that_was_made_is_synced_once(tmp_path: Path, done: list[tuple[str, str]]) -> None:
    for synced in (True, False):
        done.clear()
        durable.make_folder(tmp_path / "folder")
        assert bool(done) is synced


def test_what_holds_until_the_machine_is_started_anew_is_not_synced(
    tmp_path: Path, done: list[tuple[str, str]]
) -> None:
    durable.replace(tmp_path / "one.json", b"content", mode=0o600)
    assert done == [("rename", "one.json")]
    assert (tmp_path / "one.json").read_bytes() == b"content"
    done.clear()
    durable.replace(tmp_path / "one.json", b"content", is_synced=True)
    assert [what for what, _name in done] == ["sync", "rename"]


def test_a_boot_has_a_name() -> None:
    assert durable.this_boot() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_a_tree_is_synced_but_for_what_may_be_lost(tmp_path: Path, done: list[tuple[str, str]]) -> None:
    for name in ("disk", "log"):
        (tmp_path / name).touch()
    durable.sync_tree(tmp_path, but=("log",))
    assert done == [("sync", "disk"), ("sync", tmp_path.name)]
