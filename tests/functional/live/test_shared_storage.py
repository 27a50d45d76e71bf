"""Hosts whose guests' disks are in storage that they share: live migrations send memory only, also to another cell."""

from __future__ import annotations

from typing import Any

import pytest

from .live_cloud import ONE_NETWORK, LiveCloud

HOSTS = [f"cell{cell}-host{host}" for cell in (1, 2) for host in (1, 2)]
CLOUD: dict[str, Any] = {
    "cells": 2,
    "hosts_per_cell": 2,
    "overrides": {"simulated": {"shared_stores": dict.fromkeys(HOSTS[:3], "pool"), **ONE_NETWORK}},
}


def message(answer: Any) -> tuple[int, str]:
    return answer.status_code, next(iter(answer.json().values()))["message"]


def with_disks(cloud: LiveCloud) -> Any:
    """A server with three local disks, in the first cell."""
    flavor = cloud.flavor("live.shared.1", gen=1, disk=1, ephemeral=1, swap=64)
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


def test_a_host_without_the_storage_is_refused_or_gets_copies(cloud: LiveCloud) -> None:
    source, target = HOSTS[2:]
    flavor = cloud.flavor("live.shared.apart", gen=2, disk=1, ephemeral=1, swap=64)
    server = cloud.booted_on(source, "apart", flavor)
    cloud.driver(source).guest_write(server.id, "kept", "vdb")
    wanted: dict[str, Any] = {"host": target, "disk_over_commit": False}
    answer = cloud.migrate_live(server, version="2.24", block_migration=False, **wanted)
    assert answer.status_code == 400 and "share no storage" in message(answer)[1]
    cloud.after(server)
    for there in (target, source):
        wanted["host"] = there
        assert cloud.migrated(server, version="2.24", block_migration=True, **wanted).compute_host == there
        assert sent(cloud, server) == (True, True)
        assert "kept" in cloud.driver(there).guest_read(server.id, "vdb")
        cloud.check_left_nothing(server, there)


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


def test_another_cell_gets_no_copies_either(cloud: LiveCloud) -> None:
    flavor, target = cloud.flavor("live.shared.across", disk=1, ephemeral=1, swap=64), HOSTS[2]
    server = cloud.booted_on(HOSTS[0], "across", flavor)
    cloud.driver(HOSTS[0]).guest_write(server.id, "kept", "vdb")
    after = cloud.migrated(server, host=target)
    assert (after.status, after.compute_host) == ("ACTIVE", target), cloud.migration(server)
    assert sent(cloud, server) == (True, False)
    assert "kept" in cloud.driver(target).guest_read(server.id, "vdb")
    cloud.check_left_nothing(server, target)
