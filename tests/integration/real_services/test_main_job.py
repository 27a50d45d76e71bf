"""The main job beside the real Keystone, Glance, Neutron, Cinder and Placement."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.sagas import SagaState
from causeway.store.api import journal
from tests.functional.processes.deployment import Deployment
from tests.functional.processes.own_process import until
from tests.integration.real_services.audits import audit
from tests.integration.real_services.conftest import TOKEN_LIFE, Cloud

pytestmark = pytest.mark.timeout(600)


def other_cell(cloud: Cloud, host: str) -> str:
    return next(other for other, cell in cloud.hosts.items() if cell != cloud.hosts[host])


def with_volume(cloud: Cloud) -> tuple[Any, Any]:
    """An ACTIVE server with a volume of the volume service."""
    server = cloud.boot()
    volume = cloud.member.block_storage.create_volume(size=1, name="data")
    cloud.member.block_storage.wait_for_status(volume, "available", wait=60)
    cloud.member.compute.create_volume_attachment(server, volumeId=volume.id)
    volume_is(cloud, volume, "in-use")
    return server, volume


def volume_is(cloud: Deployment, volume: Any, status: str) -> None:
    until(
        lambda: cloud.member.block_storage.get_volume(volume.id).status, lambda seen: seen == status, f"{status} volume"
    )


def moved(cloud: Cloud, server: Any) -> str:
    """Moves a server into the other cell; returns where it was."""
    source: str = cloud.show(server).compute_host
    cloud.admin.compute.migrate_server(server, host=other_cell(cloud, source))
    cloud.wait(server, "VERIFY_RESIZE")
    assert cloud.running_on(server) == [other_cell(cloud, source)]
    return source


def bindings(cloud: Deployment, server: Any) -> dict[str, str]:
    """host -> status of the bindings of the server's port."""
    (port,) = cloud.admin.network.ports(device_id=server.id)
    assert port.status == "ACTIVE"
    found = cloud.admin.network.get(f"/ports/{port.id}/bindings").json()["bindings"]
    return {binding["host"]: binding["status"] for binding in found}


def test_a_server_with_a_volume_goes_to_the_other_cell_and_stays(cloud: Cloud) -> None:
    server, volume = with_volume(cloud)
    addresses = cloud.show(server).addresses
    source = moved(cloud, server)
    cloud.member.compute.confirm_server_resize(server.id)
    found = cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert found.compute_host == other_cell(cloud, source)
    assert found.addresses == addresses
    assert cloud.running_on(server) == [found.compute_host]
    assert bindings(cloud, server) == {found.compute_host: "ACTIVE"}
    (attachment,) = cloud.admin.block_storage.get_volume(volume.id).attachments
    assert attachment["host_name"] == found.compute_host
    assert audit(cloud) == []
    cloud.member.compute.delete_volume_attachment(server, volume)
    volume_is(cloud, volume, "available")


def test_a_server_with_a_volume_comes_back_when_it_is_reverted(cloud: Cloud) -> None:
    server, volume = with_volume(cloud)
    source = moved(cloud, server)
    cloud.member.compute.revert_server_resize(server.id)
    found = cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert found.compute_host == source
    assert cloud.running_on(server) == [source]
    assert bindings(cloud, server) == {source: "ACTIVE"}
    (attachment,) = cloud.admin.block_storage.get_volume(volume.id).attachments
    assert attachment["host_name"] == source
    assert audit(cloud) == []
    cloud.member.compute.delete_volume_attachment(server, volume)
    volume_is(cloud, volume, "available")


def test_a_move_outlives_the_token_of_its_user(cloud: Cloud) -> None:
    """The token ends before the disk is uploaded."""
    server = cloud.boot()
    source = cloud.show(server).compute_host
    cloud.fault("resize.HandOver.do.before", delay=TOKEN_LIFE + 5)
    cloud.admin.compute.migrate_server(server, host=other_cell(cloud, source))
    until(lambda: cloud.show(server).status, lambda seen: seen in ("VERIFY_RESIZE", "ERROR"), "the move to end")
    assert cloud.running_on(server) == [other_cell(cloud, source)]
    cloud.settle()
    cloud.member.compute.revert_server_resize(server.id)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert audit(cloud) == []


def test_a_conductor_takes_over_the_move_of_one_that_is_killed(cloud: Cloud) -> None:
    server, _volume = with_volume(cloud)
    source = cloud.show(server).compute_host
    point = "resize.FinishAtTarget.do.after"
    cloud.fault(point, delay=300)
    cloud.admin.compute.migrate_server(server, host=other_cell(cloud, source))
    hit = cloud.hit(point)
    cloud.processes[hit["host"]].kill()
    found = cloud.wait(server, "VERIFY_RESIZE", "ACTIVE")
    cloud.settle()
    forward = found.status == "VERIFY_RESIZE"
    assert journal.get(cloud.api_database, hit["move"]).state is (SagaState.DONE if forward else SagaState.FAILED)
    assert cloud.running_on(server) == [other_cell(cloud, source) if forward else source]
    cloud.start_role("conductor", hit["host"]).wait_ready()
    assert audit(cloud) == []
    if forward:
        cloud.member.compute.confirm_server_resize(server.id)
        cloud.wait(server, "ACTIVE")
        cloud.settle()
