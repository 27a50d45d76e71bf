"""Hosts whose guests' disks are on storage that they share: a live migration sends memory only, and deletes no disk in use."""

from __future__ import annotations

from typing import Any

import pytest

from .live_cloud import ONE_NETWORK, LiveCloud

CLOUD: dict[str, Any] = {
    "cells": 2,
    "hosts_per_cell": 2,
    "overrides": {"simulated": {"shared_storage": True, **ONE_NETWORK}},
}


def message(answer: Any) -> tuple[int, str]:
    return answer.status_code, next(iter(answer.json().values()))["message"]


def with_disks(cloud: LiveCloud, gen: int | None = 1) -> Any:
    """A server with three local disks. ``gen``: it stays among hosts of this one, which are of one cell."""
    flavor = cloud.flavor(f"live.shared.{gen}", gen=gen, disk=1, ephemeral=1, swap=64)
    server = cloud.boot(flavor=flavor)
    cloud.driver(cloud.host_of(server)).guest_write(server.id, "kept", "vdb")
    return server


def sent(cloud: LiveCloud, server: Any) -> tuple[bool, bool]:
    """Whether memory and disks travelled to the host on which the server is now."""
    arrived = cloud.driver(cloud.host_of(server)).live_arrival(server.id)
    assert arrived is not None
    return arrived.memory_processed > 0, arrived.disk_total + arrived.disk_processed > 0


@pytest.mark.parametrize("block_migration", [False, "auto"])
def test_disks_are_not_sent(cloud: LiveCloud, block_migration: Any) -> None:
    server = with_disks(cloud)
    source = cloud.host_of(server)
    memory, disks = cloud.remember(server, "a line"), cloud.driver(source).guest_disks(server.id)
    after = cloud.migrated(server, block_migration=block_migration)
    assert (after.status, after.compute_host) == ("ACTIVE", cloud.other(source)), cloud.migration(server)
    driver = cloud.driver(after.compute_host)
    assert sent(cloud, server) == (True, False)
    assert driver.guest_disks(server.id) == disks
    assert "kept" in driver.guest_read(server.id, "vdb") and cloud.memory(server) == memory
    # Nothing of it is left at its source, and so nothing there can be deleted that its target uses.
    cloud.check_left_nothing(server, after.compute_host)
    driver.guest_write(server.id, "later", "vdb")
    assert cloud.migrated(server, block_migration=block_migration).compute_host == source
    assert cloud.driver(source).guest_read(server.id, "vdb")[-2:] == ["kept", "later"]
    cloud.check_left_nothing(server, source)


def test_copying_them_all_the_same_is_refused_as_in_nova(cloud: LiveCloud) -> None:
    server = with_disks(cloud)
    source = cloud.host_of(server)
    for host in (cloud.other(source), None):
        answer = cloud.migrate_live(server, version="2.24", host=host, block_migration=True, disk_over_commit=False)
        assert answer.status_code == 400, answer.text
    answer = cloud.migrate_live(
        server, version="2.24", host=cloud.other(source), block_migration=True, disk_over_commit=False
    )
    assert message(answer)[1].endswith("Block migration can not be used with shared storage.")
    assert cloud.after(server).compute_host == source
    cloud.check_left_nothing(server, source)


def test_a_target_needs_no_room_for_disks_that_are_there(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = with_disks(cloud)
    target = cloud.other(cloud.host_of(server))
    monkeypatch.setattr(cloud.driver(target), "disk_room", lambda *, over_commit: 0)  # noqa: ARG005
    after = cloud.migrated(server, version="2.24", host=target, block_migration=False, disk_over_commit=False)
    assert after.compute_host == target


def test_a_host_without_the_storage_is_refused_or_gets_copies(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = with_disks(cloud)
    target = cloud.other(cloud.host_of(server))
    monkeypatch.setattr(cloud.driver(target), "has_shared_storage", False)
    wanted: dict[str, Any] = {"host": target, "disk_over_commit": False}
    answer = cloud.migrate_live(server, version="2.24", block_migration=False, **wanted)
    assert answer.status_code == 400 and "share no storage" in message(answer)[1]
    cloud.after(server)
    assert cloud.migrated(server, version="2.24", block_migration=True, **wanted).compute_host == target
    assert sent(cloud, server) == (True, True)
    assert "kept" in cloud.driver(target).guest_read(server.id, "vdb")


def test_a_migration_that_fails_leaves_the_disks_to_the_source(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = with_disks(cloud)
    source = cloud.host_of(server)

    def fail(_where: str) -> None:
        raise OSError("the network is gone")

    monkeypatch.setattr(cloud.driver(source), "at_hand_over", fail)
    assert cloud.migrated(server, block_migration=False).compute_host == source
    monkeypatch.undo()
    cloud.check_left_nothing(server, source)
    cloud.driver(source).guest_write(server.id, "later", "vdb")
    assert cloud.driver(source).guest_read(server.id, "vdb")[-2:] == ["kept", "later"]
    assert cloud.migrated(server, block_migration=False).compute_host == cloud.other(source)


def test_another_cell_gets_copies(cloud: LiveCloud) -> None:
    server = with_disks(cloud, gen=None)
    target = "cell2-host1" if cloud.host_of(server).startswith("cell1") else "cell1-host1"
    after = cloud.migrated(server, host=target)
    assert (after.status, after.compute_host) == ("ACTIVE", target), cloud.migration(server)
    assert sent(cloud, server) == (True, True)
    assert "kept" in cloud.driver(target).guest_read(server.id, "vdb")
    cloud.check_left_nothing(server, target)


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_cold_migration_still_moves_the_disks(cloud: LiveCloud, end: str) -> None:
    server = with_disks(cloud)
    source = cloud.host_of(server)
    cloud.admin.compute.migrate_server(server.id)
    assert cloud.wait(server, "VERIFY_RESIZE").compute_host == cloud.other(source)
    (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    host = cloud.other(source) if end == "confirm" else source
    assert "kept" in cloud.driver(host).guest_read(server.id, "vdb")
    cloud.check_left_nothing(server, host)
