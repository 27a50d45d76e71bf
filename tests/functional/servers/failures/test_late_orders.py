"""Orders whose answer or whose request was lost: what they made is found and taken down, and they do nothing when late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway import errors
from causeway.compute.handover.resize import ResizeEndpoint
from causeway.context import admin_context
from causeway.model.block_device import BlockDevice
from causeway.model.outcomes import OperationToken
from causeway.rpc.transport import Verdict
from causeway.store.api import journal
from causeway.store.cell import block_devices
from tests.functional.servers.moves_cloud import Cloud

FINISH = "finish_snapshot_based_resize_at_dest"


@pytest.fixture
def disconnected(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, BlockDevice]]]:
    """(host, volume) of what hosts release when they took guests down."""
    found: list[tuple[str, BlockDevice]] = []
    for host in cloud.parts.computes:
        driver = cloud.driver(host)

        def destroy(uuid: str, vifs: Any, volumes: list[BlockDevice], *, host: str = host, **more: Any) -> None:
            found.extend((host, volume) for volume in volumes)
            type(cloud.driver(host)).destroy(cloud.driver(host), uuid, vifs, volumes, **more)

        monkeypatch.setattr(driver, "destroy", destroy)
    yield found


@pytest.mark.parametrize("boot", ["image", "volume"])
def test_volumes_of_a_guest_whose_making_was_not_heard_of_are_disconnected(
    cloud: Cloud, disconnected: list[tuple[str, BlockDevice]], boot: str
) -> None:
    server = cloud.boot() if boot == "image" else cloud.boot_from_volume()
    cloud.attach(server, cloud.volume())
    before = cloud.reality(server)
    cloud.without_patience()
    cloud.lose(FINISH, Verdict.LOSE_REPLY)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)

    assert cloud.reality(server) == before
    target = cloud.migration(server).dest_compute
    released = {volume.volume_id for host, volume in disconnected if host == target and volume.connection_info}
    assert released == set(before["volumes"])
    assert all(
        volume.connection_info["data"]["device_path"]
        for host, volume in disconnected
        if host == target and volume.connection_info is not None
    )


def test_volumes_connected_for_a_guest_that_was_never_made_are_disconnected(
    cloud: Cloud, disconnected: list[tuple[str, BlockDevice]], monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.without_patience()
    server = cloud.boot_from_volume()
    before = cloud.reality(server)

    def fail(*_given: Any, **_more: Any) -> None:
        raise errors.GuestFailed("The hypervisor is out of order.")

    for host in ("cell2-host1", "cell2-host2"):
        monkeypatch.setattr(cloud.driver(host), "spawn", fail)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert cloud.reality(server) == before
    target = cloud.migration(server).dest_compute
    assert {volume.volume_id for host, volume in disconnected if host == target} == set(before["volumes"])


@pytest.mark.parametrize("lost", [FINISH, "prep_snapshot_based_resize_at_source"])
@pytest.mark.embedded("gives orders to computes of this process")
def test_an_order_that_arrives_after_it_was_undone_does_nothing(cloud: Cloud, lost: str) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    cloud.without_patience()
    cloud.lose(lost)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    cloud.settle()

    migration = cloud.migration(server)
    (move,) = journal.of_migration(cloud.parts.api_database, migration.uuid)
    context, devices = admin_context(), block_devices.of_instance(cloud.cell("cell1"), server.id)
    order: dict[str, Any] = {
        "token": OperationToken(move.id, migration.uuid, move.epoch, "late"),
        "instance": cloud.record(server, "cell1"),
        "block_devices": devices,
    }
    with pytest.raises(errors.ClaimRefused):
        if lost == FINISH:
            target = ResizeEndpoint(cloud.parts.computes[migration.dest_compute].host)
            target.finish_snapshot_based_resize_at_dest(context, **order, snapshot=None, power_on=True)
        else:
            source = ResizeEndpoint(cloud.parts.computes[migration.source_compute].host)
            source.prep_snapshot_based_resize_at_source(context, **order, image_id=None)
    assert cloud.reality(server) == before
