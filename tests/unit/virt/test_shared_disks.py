"""A disk in shared storage is never lost, and never deleted by a host that does not own it, whoever dies in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway import errors
from causeway.virt.shared_disks.folder_store import FolderStore
from causeway.virt.shared_disks.ownership import SharedDisks

UUID = "5f5b6a3e-8b0e-4a36-9c39-1f6d2f4a9d11"
STORED = f"{UUID}_disk"


class Died(Exception):
    """The process ends here."""


class MortalStore(FolderStore):
    """A store whose host dies at one of its calls: before the call takes effect, or after."""

    dies_in: int | None = None

    def __getattribute__(self, name: str) -> object:
        found = super().__getattribute__(name)
        if name not in ("set_owner", "make_snapshot", "roll_back", "delete_snapshot", "rename", "remove", "fence"):
            return found

        def mortal(*args: object) -> object:
            if self.dies_in is not None and self.dies_in <= 1:
                if self.dies_in == 1:
                    found(*args)
                raise Died
            if self.dies_in is not None:
                self.dies_in -= 2
            return found(*args)

        return mortal


class Cloud:
    """Hosts ``a``, ``b``, ``c`` that share a store, and one server. ``running``: where its guest runs, as it should."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.writers: list[str] = []
        self.fenced: list[str] = []
        self.store = MortalStore(tmp_path / "store", lambda path: len(path.read_bytes()), self.users, self.fence)
        self.store.start()
        self.disks = {host: SharedDisks(self.store, host) for host in "abc"}

    def users(self, name: str) -> list[str]:  # noqa: ARG002 - there is one guest
        return [host for host in self.writers if host not in self.fenced]

    def fence(self, users: list[str]) -> None:
        self.fenced += users

    def folder(self, host: str) -> Path:
        return self.tmp_path / host / UUID

    def stashed(self, host: str) -> Path:
        return self.tmp_path / host / f"{UUID}_resize"

    @property
    def content(self) -> bytes:
        return self.store.path(STORED).read_bytes()

    def write(self, content: bytes) -> None:
        self.store.path(STORED).write_bytes(content)

    def owner(self) -> str | None:
        stored = self.store.find(STORED)
        return stored.owner if stored is not None else None

    # the acts of a host, as its driver does them

    def build(self, host: str) -> None:
        self.disks[host].make(self.folder(host), "disk", lambda name: self.make_file(name, b"built"))

    def make_file(self, name: str, content: bytes) -> None:
        self.store.path(name).write_bytes(content)

    def put_aside(self, host: str) -> None:
        if not self.stashed(host).exists():
            self.disks[host].put_aside(self.folder(host))
            self.folder(host).rename(self.stashed(host))

    def take(self, host: str, source: str) -> None:
        if self.folder(host).exists():
            self.destroy(host)
        held = self.disks[source].held(self.stashed(source))["disk"]
        offered = self.offered[source]
        assert held.name == offered.name
        self.disks[host].take(self.folder(host), "disk", offered)

    def destroy(self, host: str) -> None:
        self.disks[host].release(self.folder(host))
        _delete(self.folder(host))

    def put_back(self, host: str) -> None:
        if self.stashed(host).exists():
            self.disks[host].put_back(self.stashed(host))
            self.stashed(host).rename(self.folder(host))

    def release_stashed(self, host: str) -> None:
        self.disks[host].release_stashed(self.stashed(host))
        _delete(self.stashed(host))

    def hand_over(self, host: str) -> None:
        if self.folder(host).exists():
            self.offered = {host: self.disks[host].offered(self.folder(host))["disk"]}
        self.put_aside(host)


def _delete(folder: Path) -> None:
    if folder.exists():
        (folder / "shared.json").unlink(missing_ok=True)
        folder.rmdir()


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return Cloud(tmp_path)


def test_a_revert_restores_content_and_size_of_before(cloud: Cloud) -> None:
    cloud.build("a")
    cloud.hand_over("a")
    cloud.take("b", "a")
    cloud.write(b"written at b, and larger")
    cloud.destroy("b")
    cloud.put_back("a")
    assert (cloud.content, cloud.owner()) == (b"built", "a 3")
    assert cloud.store.find(STORED).snapshots == ()  # type: ignore[union-attr]


def test_a_confirm_deletes_a_snapshot_and_never_the_disk(cloud: Cloud) -> None:
    cloud.build("a")
    cloud.hand_over("a")
    cloud.take("b", "a")
    cloud.write(b"written at b")
    cloud.release_stashed("a")
    assert (cloud.content, cloud.owner()) == (b"written at b", "b 2")
    cloud.destroy("b")
    assert cloud.store.names() == []


def test_a_second_target_gets_what_the_source_put_aside(cloud: Cloud) -> None:
    cloud.build("a")
    cloud.hand_over("a")
    cloud.take("b", "a")
    cloud.write(b"a guest that failed at b wrote this")
    cloud.destroy("b")
    cloud.take("c", "a")
    assert (cloud.content, cloud.owner()) == (b"built", "c 3")


def test_a_host_whose_server_was_evacuated_deletes_only_its_folder(cloud: Cloud) -> None:
    cloud.build("a")
    cloud.writers = ["a"]
    cloud.disks["b"].take_over(cloud.folder("b"), "disk", "a")
    cloud.write(b"written at b")
    assert cloud.fenced == ["a"]
    cloud.destroy("a")
    cloud.disks["b"].settle(cloud.folder("b"))
    assert (cloud.content, cloud.owner()) == (b"written at b", "b 2")
    with pytest.raises(errors.GuestFailed):
        cloud.disks["c"].take_over(cloud.folder("c"), "disk", "a")


def test_an_evacuation_that_fails_returns_the_disk_to_the_dead_host(cloud: Cloud) -> None:
    cloud.build("a")
    cloud.disks["b"].take_over(cloud.folder("b"), "disk", "a")
    assert cloud.owner() == "b 2 after a 1"
    cloud.destroy("b")
    assert (cloud.content, cloud.owner()) == (b"built", "a 1")
    cloud.disks["a"].require_owned(cloud.folder("a"))
    assert not cloud.disks["b"].take_over(cloud.folder("b"), "disk.eph0", "a")


def test_a_host_that_died_while_it_evacuated_a_server_does_not_keep_the_disk(cloud: Cloud) -> None:
    cloud.build("a")
    cloud.disks["b"].take_over(cloud.folder("b"), "disk", "a")
    cloud.disks["c"].take_over(cloud.folder("c"), "disk", "a")
    assert cloud.owner() == "c 3 after a 1"
    cloud.disks["c"].settle(cloud.folder("c"))
    cloud.destroy("b")
    cloud.destroy("a")
    assert (cloud.content, cloud.owner()) == (b"built", "c 3")


def test_a_disk_of_another_host_is_neither_started_nor_offered(cloud: Cloud) -> None:
    cloud.build("a")
    cloud.disks["b"].take_over(cloud.folder("b"), "disk", "a")
    for act in (cloud.disks["a"].require_owned, cloud.disks["a"].offered):
        with pytest.raises(errors.GuestFailed, match="belongs to another host"):
            act(cloud.folder("a"))
    cloud.disks["b"].require_owned(cloud.folder("b"))


def test_a_disk_that_somebody_has_open_is_not_started(cloud: Cloud) -> None:
    cloud.build("a")
    cloud.writers = ["c"]
    with pytest.raises(errors.GuestFailed, match="in use") as failure:
        cloud.disks["a"].require_owned(cloud.folder("a"))
    assert "c" in failure.value.details


def test_a_guest_that_arrives_live_brings_its_disk_only_when_it_is_there(cloud: Cloud) -> None:
    cloud.build("a")
    offered = cloud.disks["a"].offered(cloud.folder("a"))["disk"]
    cloud.disks["b"].await_guest(cloud.folder("b"), "disk", offered)
    cloud.destroy("b")
    assert cloud.owner() == "a 1"
    cloud.disks["b"].await_guest(cloud.folder("b"), "disk", offered)
    cloud.disks["b"].settle(cloud.folder("b"))
    cloud.destroy("a")
    assert (cloud.content, cloud.owner()) == (b"built", "b 2")


def test_a_new_disk_does_not_replace_one_with_its_name(cloud: Cloud) -> None:
    cloud.build("a")
    with pytest.raises(errors.GuestFailed, match="not this guest's"):
        cloud.build("b")
    cloud.destroy("b")
    assert cloud.content == b"built"


@pytest.mark.parametrize("other", ["store", "name"])
def test_a_host_that_does_not_see_the_disk_refuses_it(cloud: Cloud, tmp_path: Path, other: str) -> None:
    cloud.build("a")
    offered = cloud.disks["a"].offered(cloud.folder("a"))["disk"]
    apart = FolderStore(tmp_path / "other", lambda _path: 0, cloud.users, cloud.fence)
    apart.start()
    disks = SharedDisks(apart, "b")
    if other == "name":
        # It says that it is the same store, and does not have the disk.
        (tmp_path / "other" / "id").write_text((tmp_path / "store" / "id").read_text())
    assert not disks.reaches(offered)
    with pytest.raises(errors.DiskTransferFailed):
        disks.take(cloud.folder("b"), "disk", offered)


# More calls than an act has.
_NEVER = 99
_MOVES = ("confirm", "revert", "fail at target", "live", "live fails", "evacuate", "evacuation fails", "rebuild")


@settings(max_examples=60, deadline=None)
@given(
    moves=st.lists(st.tuples(st.sampled_from(_MOVES), st.sampled_from("abc"), st.lists(st.integers(0, 20))), max_size=4)
)
def test_no_death_loses_the_disk_or_leaves_one(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[str, str, list[int]]]
) -> None:
    """Every act is repeated until it ends, as sagas repeat their steps; between two attempts the host dies."""
    _carry_out(Cloud(tmp_path_factory.mktemp("cloud")), moves)


@pytest.mark.parametrize("act", range(4))
@pytest.mark.parametrize("move", _MOVES)
def test_a_death_at_any_call_of_any_act_of_a_move_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, move: str, act: int
) -> None:
    """``act``: which of the move's acts its host dies in, before and after each of its calls of the store."""
    for death in range(12):
        cloud = Cloud(tmp_path_factory.mktemp("cloud"))
        _carry_out(cloud, [(move, "b", [_NEVER] * act + [death])])


def _carry_out(cloud: Cloud, moves: list[tuple[str, str, list[int]]]) -> None:
    """Makes the server, moves it, and deletes it. Judges the store after each move."""
    home, content = "a", b"built"
    cloud.build("a")
    for number, (move, target, deaths) in enumerate(moves):
        written = f"written in move {number}".encode()
        pending = iter(deaths)

        def repeated(act: Callable[[], object], pending: object = pending) -> None:
            while True:
                cloud.store.dies_in = next(pending, None)  # type: ignore[call-overload]
                try:
                    act()
                except Died:
                    continue
                finally:
                    cloud.store.dies_in = None
                return

        home, content = _move(cloud, move, home, target, content, written, repeated)
        assert cloud.content == content
        assert (cloud.owner() or "").split(" ")[0] == home
        assert cloud.store.names() == [STORED]
        assert cloud.store.find(STORED).snapshots == ()  # type: ignore[union-attr]
        cloud.disks[home].require_owned(cloud.folder(home))
    cloud.destroy(home)
    assert cloud.store.names() == []


def _move(
    cloud: Cloud,
    move: str,
    home: str,
    target: str,
    content: bytes,
    written: bytes,
    repeated: Callable[[Callable[[], object]], None],
) -> tuple[str, bytes]:
    """Carries out a move. Returns where the server is then, and what is on its disk."""
    disks, folder = cloud.disks, cloud.folder
    if move in ("confirm", "revert", "fail at target"):
        repeated(lambda: cloud.hand_over(home))
        repeated(lambda: cloud.take(target, home))
        cloud.write(written)
        if move == "confirm":
            repeated(lambda: cloud.release_stashed(home))
            return target, written
        repeated(lambda: cloud.destroy(target))
        repeated(lambda: cloud.put_back(home))
        return home, content
    if move == "rebuild":
        repeated(lambda: cloud.destroy(home))
        repeated(lambda: cloud.build(home))
        return home, b"built"
    if target == home:
        return home, content
    if move in ("evacuate", "evacuation fails"):
        repeated(lambda: disks[target].take_over(folder(target), "disk", home))
        cloud.write(written)
        if move == "evacuation fails":
            repeated(lambda: cloud.destroy(target))
            return home, written
        repeated(lambda: disks[target].settle(folder(target)))
        repeated(lambda: cloud.destroy(home))
        return target, written
    offered = disks[home].offered(folder(home))["disk"]
    repeated(lambda: disks[target].await_guest(folder(target), "disk", offered))
    if move == "live fails":
        repeated(lambda: cloud.destroy(target))
        return home, content
    repeated(lambda: disks[target].settle(folder(target)))
    cloud.write(written)
    repeated(lambda: cloud.destroy(home))
    return target, written


class Looks:
    """A store, and what it is asked."""

    def __init__(self, store: FolderStore) -> None:
        self.store = store
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> object:
        self.asked.append(name)
        return getattr(self.store, name)


def test_a_disk_is_looked_at_once_to_take_it_and_once_before_its_guest_starts(tmp_path: Path) -> None:
    """Each look is a call of Ceph, while the guest is off."""
    cloud = Cloud(tmp_path)
    looks = Looks(cloud.store)
    cloud.disks["b"] = SharedDisks(looks, "b")  # type: ignore[arg-type]
    cloud.build("a")
    cloud.hand_over("a")
    cloud.take("b", "a")
    assert [name for name in looks.asked if name != "id"] == ["find", "set_owner"]
    looks.asked.clear()
    cloud.disks["b"].require_owned(cloud.folder("b"))
    assert looks.asked == ["find"]


def test_whoever_has_a_disk_open_is_seen_with_the_disk(tmp_path: Path) -> None:
    cloud = Cloud(tmp_path)
    cloud.build("a")
    cloud.writers = ["a"]
    stored = cloud.store.find(STORED)
    assert stored is not None and stored.users == ("a",)
