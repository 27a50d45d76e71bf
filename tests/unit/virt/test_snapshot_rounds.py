"""Rounds of disks in a pool: which snapshots there are after each act. With data, on a real Ceph: `test_ceph_rounds`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from causeway.errors import GuestFailed, StorageUnreachable, WarmCopyImpossible
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.states import PowerState
from causeway.virt.libvirt import power
from causeway.virt.libvirt.storage.snapshot_rounds import SnapshotRounds

UUID = "5f5b6a3e-8b0e-4a36-9c39-1f6d2f4a9d11"
SERVER = Instance(UUID, "project", "user", "vm1", Flavor("1", "small", 1, 64, 1))
NAMES = ["disk", "disk.eph0"]


@dataclass
class Pool:
    """As much of a store as rounds use. ``fails_at``: the act that Ceph does not answer."""

    images: dict[str, list[str]] = field(default_factory=lambda: {f"{UUID}_{name}": [] for name in NAMES})
    fails_at: int | None = None
    acts: int = 0

    def image(self, name: str) -> Any:
        found = self.images.get(name)
        return None if found is None else SimpleNamespace(size=1 << 20, snapshots=list(found))

    def existing(self, name: str) -> Any:
        return self.image(name)

    def make_snapshot(self, name: str, label: str) -> None:
        self._act()
        self.images[name].append(label)

    def delete_snapshot(self, name: str, label: str) -> None:
        self._act()
        self.images[name].remove(label)

    def changes(self, name: str, since: str | None, until: str | None) -> list[tuple[int, int]] | None:
        known = {None, *self.images.get(name, [])}
        return [(0, 65536)] if {since, until} <= known else None

    def _act(self) -> None:
        self.acts += 1
        if self.acts == self.fails_at:
            raise StorageUnreachable("Shared storage did not answer in time.")

    def numbers(self) -> list[set[str]]:
        """Of each disk, the numbers of the rounds that it has."""
        return [{label.rpartition("-")[2] for label in labels} for labels in self.images.values()]


@pytest.fixture
def pool() -> Pool:
    return Pool()


@pytest.fixture
def rounds(pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SnapshotRounds:
    monkeypatch.setattr(power, "state", lambda *_: PowerState.RUNNING)
    images = SimpleNamespace(opened=lambda *_: nullcontext())
    offered = {name: SimpleNamespace(name=f"{UUID}_{name}") for name in NAMES}
    disks = SimpleNamespace(store=pool, images=images, directory=tmp_path, offered=lambda _uuid: offered)
    return SnapshotRounds(cast(Any, None), cast(Any, disks), "host/1 of a")


def begin(rounds: SnapshotRounds, number: int, since: int | None = None) -> int | None:
    return rounds.begin(SERVER, NAMES, number, since=since).since


def test_only_snapshots_that_the_next_round_counts_from_stay(rounds: SnapshotRounds, pool: Pool) -> None:
    assert begin(rounds, 1) is None and pool.numbers() == [{"1"}, {"1"}]
    assert begin(rounds, 2, since=1) == 1 and pool.numbers() == [{"1", "2"}, {"1", "2"}]
    # Round 2 did not arrive.
    assert begin(rounds, 3, since=1) == 1 and pool.numbers() == [{"1", "3"}, {"1", "3"}]
    assert begin(rounds, 4, since=3) == 3 and pool.numbers() == [{"3", "4"}, {"3", "4"}]
    rounds.discard(UUID)
    assert pool.numbers() == [set(), set()] and not rounds.knows(UUID)


def test_names_are_names_for_ceph_and_of_one_series(rounds: SnapshotRounds, pool: Pool) -> None:
    begin(rounds, 1)
    (label,) = pool.images[f"{UUID}_disk"]
    assert label.startswith("round-host-1-of-a-") and label.endswith("-1")
    assert pool.images[f"{UUID}_disk.eph0"] == [label]


def test_a_round_that_is_not_known_any_more_makes_the_next_one_whole(rounds: SnapshotRounds, pool: Pool) -> None:
    begin(rounds, 1)
    pool.images[f"{UUID}_disk"].clear()
    assert begin(rounds, 2, since=1) is None
    assert pool.numbers() == [{"2"}, {"2"}]
    assert begin(rounds, 3, since=7) is None


def test_snapshots_of_others_stay_and_those_of_former_hosts_of_the_guest_go(rounds: SnapshotRounds, pool: Pool) -> None:
    pool.images[f"{UUID}_disk"] += ["stash-a-1", "copied-x", "round-dead-host-12345678-4"]
    begin(rounds, 1)
    assert pool.images[f"{UUID}_disk"][:2] == ["stash-a-1", "copied-x"] and len(pool.images[f"{UUID}_disk"]) == 3
    pool.images[f"{UUID}_disk"].append("round-next-host-12345678-1")
    rounds.discard(UUID)
    # Its guest may be another host's by now.
    assert pool.images[f"{UUID}_disk"] == ["stash-a-1", "copied-x", "round-next-host-12345678-1"]


@pytest.mark.parametrize("fails_at", range(1, 7))
def test_whatever_fails_in_the_middle_is_begun_again_and_leaves_nothing(
    rounds: SnapshotRounds, pool: Pool, fails_at: int
) -> None:
    pool.fails_at = fails_at
    since: int | None = None
    for number in range(1, 6):
        try:
            found = begin(rounds, number, since)
        except StorageUnreachable:
            assert not rounds.has(UUID, number)
            with pytest.raises(GuestFailed), rounds.open(UUID, "disk", number):
                pass
            continue
        assert found == since and rounds.has(UUID, number)
        since = number
    rounds.discard(UUID)
    assert pool.numbers() == [set(), set()]


def test_a_disk_that_was_deleted_meanwhile_keeps_no_rounds_from_ending(rounds: SnapshotRounds, pool: Pool) -> None:
    begin(rounds, 1)
    pool.images.clear()
    rounds.discard(UUID)
    assert not rounds.knows(UUID)


def test_a_round_that_has_ended_is_not_read_and_its_changes_stay_known(rounds: SnapshotRounds) -> None:
    begin(rounds, 1)
    rounds.end(UUID)
    assert not rounds.has(UUID, 1)
    with rounds.open_changes(UUID, "disk", 1) as reader:
        assert reader is not None and reader.extents() == [(0, 65536)]
    for name, since in (("disk", 2), ("other", 1)):
        with rounds.open_changes(UUID, name, since) as unknown:
            assert unknown is None


def test_a_guest_that_is_off_has_no_rounds(rounds: SnapshotRounds, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "state", lambda *_: PowerState.SHUTDOWN)
    with pytest.raises(WarmCopyImpossible):
        begin(rounds, 1)
    assert pool.numbers() == [set(), set()] and not rounds.knows(UUID)
