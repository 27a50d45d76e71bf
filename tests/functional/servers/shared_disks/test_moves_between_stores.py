"""Moves out of a store, into one and between two: the disks are copied while their guest runs, straight into the other store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.virt.shared_disks.folder_store import FolderStore
from tests.functional.servers.dying_threads import SOON_NOTICED, THREADS_DIE
from tests.functional.servers.moves_cloud import PATIENCE
from tests.functional.servers.shared_disks.shared_cloud import SharedCloud

# Hosts with a store each; the others keep disks as files.
ONE, TWO, FILES = "cell1-host1", "cell2-host1", "cell1-host2"
STORES = {ONE: "one", TWO: "two"}
#: from where to where
WAYS = {
    "from a store into another": (ONE, TWO),
    "from a store into files": (ONE, FILES),
    "from files into a store": (FILES, ONE),
    "from files into a store elsewhere": (FILES, TWO),
}
pytestmark = THREADS_DIE


class ApartCloud(SharedCloud):
    """Two hosts have a store each, and two have none."""

    def store_of(self, host: str) -> FolderStore | None:
        if host not in STORES:
            return None
        folder = self.embedded.state.path / "stores" / STORES[host]
        return FolderStore(folder, lambda _path: 0, lambda _name: [], lambda _users: None)

    def everything(self, server: Any) -> list[str]:
        """Each file of the server in any store."""
        folder = self.embedded.state.path / "stores"
        return sorted(str(path.relative_to(folder)) for path in folder.glob(f"*/*/{server.id}*"))

    def started(self, host: str) -> Any:
        flavor = self.flavor("apart", disk=1, ephemeral=1, swap=64)
        server = self.boot("apart", flavor=flavor)
        if self.host_of(server) != host:
            self.admin.compute.migrate_server(server.id, host=host)
            self.wait(server, "VERIFY_RESIZE")
            self.confirmed(server)
        for device in ("vda", "vdb"):
            self.write(server, f"written on {device}", device)
        return server

    def check_only_at(self, server: Any, host: str, *, put_aside_at: str | None = None) -> None:
        """The server's disks are whole and its host's; what its former host keeps for a revert is there, and nothing else."""
        self.settle()
        assert self.host_of(server) == host
        expected = []
        for each in filter(None, (host, put_aside_at)):
            store = self.store_of(each)
            names = [f"{server.id}_{name}" for name in ("disk", "disk.eph0", "disk.swap")] if store is not None else []
            for name in names:
                expected += [f"{STORES[each]}/{kind}/{name}" for kind in ("disks", "owners")]
                stored = store.find(name) if store is not None else None
                assert stored is not None and stored.owning_host == each
                if each == put_aside_at:
                    expected += [f"{STORES[each]}/snapshots/{name}@{label}" for label in stored.snapshots]
                    assert [label[:6] for label in stored.snapshots] == ["stash-"]
        assert self.everything(server) == sorted(expected)
        for each in self.parts.computes:
            assert not self.driver(each).double_starts
            assert self.driver(each).list_temporary_files() == {"rounds": [], "incoming": []}
        assert self.audit().is_clean, self.audit().disagreements


KIND = ApartCloud
CLOUD: dict[str, Any] = {
    **SOON_NOTICED,
    "cells": 2,
    "hosts_per_cell": 2,
    "overrides": {**SOON_NOTICED["overrides"], "simulated": {"shared_stores": STORES}},
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    return WAYS[request.param]


@pytest.fixture
def warm(cloud: ApartCloud) -> None:
    """Who copies all of a disk while its guest is off fails."""
    cloud.break_driver(list(cloud.parts.computes), "export_disk")


def migrate(cloud: ApartCloud, server: Any, target: str) -> None:
    cloud.admin.compute.migrate_server(server.id, host=target)


def moved(cloud: ApartCloud, server: Any, target: str) -> None:
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    assert cloud.moves(server)[-1].data["warm"]["ended"] is None
    assert cloud.host_of(server) == target


@pytest.mark.parametrize("direct", ["auto", "never"])
@pytest.mark.usefixtures("warm")
def test_what_the_guest_writes_meanwhile_arrives(cloud: ApartCloud, way: tuple[str, str], direct: str) -> None:
    source, target = way
    cloud.option("direct", direct, "moves")
    cloud.option("warm_round_seconds", 0.0, "moves")
    server = cloud.started(source)
    by_images = direct == "never" and source[:5] != target[:5]
    with cloud.held("receive_part" if by_images else "receive_round") as arrived:
        migrate(cloud, server, target)
        assert arrived.wait(PATIENCE)
        assert cloud.show(server).power_state == 1
        cloud.write(server, "meanwhile " * 200)
    moved(cloud, server, target)
    assert {"written on vda", "meanwhile " * 200} <= set(cloud.read(server))
    assert "written on vdb" in cloud.read(server, "vdb")
    cloud.check_only_at(server, target, put_aside_at=source)
    cloud.confirmed(server)
    cloud.check_only_at(server, target)


@pytest.mark.usefixtures("warm")
def test_rounds_are_in_the_stores_while_the_guest_runs(
    cloud: ApartCloud, way: tuple[str, str], at_point: Callable[[str, Callable[[], None]], None]
) -> None:
    source, target = way
    server, seen = cloud.started(source), list[str]()
    at_point("warm.part.in", lambda: seen.extend(cloud.everything(server)))
    migrate(cloud, server, target)
    moved(cloud, server, target)
    in_source, in_target = (f"{STORES.get(host)}/" for host in way)
    assert {path.startswith(in_source) for path in seen if "@round-" in path} == ({True} if source in STORES else set())
    assert {path.startswith(in_target) for path in seen if ".arriving." in path} == (
        {True} if target in STORES else set()
    )
    assert f"{in_target}disks/{server.id}_disk" not in seen


@pytest.mark.usefixtures("warm")
def test_a_revert_gives_the_disks_of_before(cloud: ApartCloud, way: tuple[str, str]) -> None:
    source, target = way
    server = cloud.started(source)
    migrate(cloud, server, target)
    moved(cloud, server, target)
    cloud.write(server, "after the move")
    cloud.reverted(server)
    assert "written on vda" in cloud.read(server) and "after the move" not in cloud.read(server)
    cloud.check_only_at(server, source)


@pytest.mark.parametrize("when", ["VERIFY_RESIZE", "ACTIVE"])
def test_a_server_that_is_deleted_leaves_nothing(cloud: ApartCloud, when: str) -> None:
    server = cloud.started(ONE)
    migrate(cloud, server, TWO)
    moved(cloud, server, TWO)
    if when == "ACTIVE":
        cloud.confirmed(server)
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    cloud.settle()
    assert cloud.everything(server) == []


# Where a host's thread dies once: while the guest runs, and afterwards.
WHILE_IT_RUNS = (
    "warm.round.begun",
    "warm.part.out",
    "warm.part.in",
    "driver.begin_round.before",
    "driver.begin_round.after",
    "driver.open_copy.after",
)
WHEN_IT_IS_OFF = (
    "driver.open_changes.after",
    "driver.stash_disks.after",
    "driver.adopt_disks.before",
    "driver.adopt_disks.after",
    "driver.spawn.after",
    "driver.end_rounds.before",
    "driver.discard_copy.before",
)


@pytest.mark.parametrize("point", (*WHILE_IT_RUNS, *WHEN_IT_IS_OFF))
@pytest.mark.parametrize("source", [ONE, FILES], ids=["out of a store", "out of files"])
def test_a_host_dies_once_in_the_middle(
    cloud: ApartCloud, dies_at: Callable[[str], None], source: str, point: str
) -> None:
    server = cloud.started(source)
    dies_at(point)
    migrate(cloud, server, TWO)
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.check_only_at(server, TWO, put_aside_at=source)
    assert "written on vda" in cloud.read(server) and "written on vdb" in cloud.read(server, "vdb")
    cloud.reverted(server)
    assert "written on vda" in cloud.read(server)
    cloud.check_only_at(server, source)


@pytest.mark.parametrize(
    "point", ("warm.part.in", "driver.begin_round.after", "driver.open_copy.after", "driver.stash_disks.after")
)
@pytest.mark.parametrize("broken", ["adopt_disks", "spawn"])
def test_a_move_that_fails_leaves_nothing_in_either_store(
    cloud: ApartCloud, dies_at: Callable[[str], None], point: str, broken: str
) -> None:
    server = cloud.started(ONE)
    dies_at(point)
    cloud.break_driver([TWO], broken)
    migrate(cloud, server, TWO)
    cloud.wait(server, "ACTIVE")
    assert "written on vda" in cloud.read(server)
    cloud.check_only_at(server, ONE)
