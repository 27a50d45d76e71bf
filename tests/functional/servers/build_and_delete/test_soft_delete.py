"""Deletes that are put off: the server is switched off and can be restored, until its time is over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.conductor.upkeep import reclaim
from causeway.model.soft_deleted import SINCE
from causeway.rpc.transport import Verdict
from causeway.store.cell import instances
from tests.functional.servers.dying_threads import THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.rescued import has_its_own, is_rescued, rescued, with_mark

CLOUD: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"reclaim_instance_interval": 3600, "rpc_response_timeout": 3},
        "moves": {"lease": 1.5, "first_pause": 0.1, "stuck_retry_interval": 0.5},
        "fault_injection": {"enabled": True},
    }
}
pytestmark = THREADS_DIE


@pytest.fixture(autouse=True)
def deleted_for_good(cloud: Cloud) -> Iterator[None]:
    yield
    for server in list(cloud.admin.compute.servers(all_projects=True)):
        act(cloud, server, "forceDelete")


def act(cloud: Cloud, server: Any, action: str) -> int:
    answer = cloud.admin.compute.request(f"/servers/{server.id}/action", "POST", json={action: None}, raise_exc=False)
    return int(answer.status_code)


def soft_deleted(cloud: Cloud) -> Any:
    server = cloud.boot()
    cloud.member.compute.delete_server(server.id)
    return cloud.wait(server, "SOFT_DELETED")


def is_gone(cloud: Cloud, server: Any) -> None:
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")


def test_the_server_is_off_and_keeps_what_it_has(cloud: Cloud) -> None:
    server = soft_deleted(cloud)
    facts = cloud.driver(server.compute_host).inspect(server.id)
    assert facts.has_disks and str(server.power_state) == "4"
    assert ("compute_soft_delete_instance", "Success") in cloud.events(server, "delete")
    assert list(cloud.member.network.ports(device_id=server.id))
    cloud.settle()
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
    cloud.member.compute.delete_server(server.id)
    assert cloud.show(server).status == "SOFT_DELETED"


def test_a_soft_deleted_server_is_restored(cloud: Cloud) -> None:
    server = soft_deleted(cloud)
    assert act(cloud, server, "restore") == 202
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert ("compute_restore_instance", "Success") in cloud.events(server, "restore")
    _cell, database = cloud.parts.cells.of_server(server.id)
    assert SINCE not in instances.get(database, server.id).system_metadata
    assert act(cloud, server, "restore") == 409
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_a_soft_deleted_server_can_be_deleted_for_good(cloud: Cloud) -> None:
    server = soft_deleted(cloud)
    assert act(cloud, server, "forceDelete") == 202
    is_gone(cloud, server)
    assert not cloud.driver(server.compute_host).inspect(server.id).has_disks


def test_a_soft_deleted_server_is_reclaimed_when_its_time_is_over(cloud: Cloud) -> None:
    server = soft_deleted(cloud)
    services, conductor = cloud.parts.conductor._services, cloud.parts.conductor._conductor
    reclaim.reclaim(services, conductor)
    cloud.settle()
    assert cloud.show(server).status == "SOFT_DELETED"
    _cell, database = cloud.parts.cells.of_server(server.id)
    since = instances.get(database, server.id).system_metadata | {SINCE: "2020-01-01T00:00:00"}
    instances.update(database, server.id, system_metadata=since)
    reclaim.reclaim(services, conductor)
    is_gone(cloud, server)


def test_one_that_has_no_guest_to_keep_is_deleted_at_once(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    cloud.member.compute.delete_server(server.id)
    is_gone(cloud, server)


@pytest.mark.parametrize("point", ["driver.power_off.after", "soft_delete.MarkSoftDeleted.do.before"])
def test_another_conductor_continues_a_soft_delete_and_a_restore(cloud: Cloud, dies_at: Any, point: str) -> None:
    server = cloud.boot()
    dies_at(point)
    cloud.member.compute.delete_server(server.id)
    cloud.wait(server, "SOFT_DELETED")
    dies_at("restore.MarkRestored.do.before")
    assert act(cloud, server, "restore") == 202
    cloud.wait(server, "ACTIVE")


def test_one_that_is_rescued_comes_up_from_its_own_disk(cloud: Cloud) -> None:
    server = with_mark(cloud)
    rescued(cloud, server)
    cloud.member.compute.delete_server(server.id)
    cloud.wait(server, "SOFT_DELETED")
    assert act(cloud, server, "restore") == 202
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    has_its_own(cloud, server)
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_one_that_is_rescued_stays_so_if_it_is_not_deleted(cloud: Cloud) -> None:
    server = with_mark(cloud)
    rescued(cloud, server)
    cloud.without_patience()
    # Its guest is off by then; the answer is lost.
    cloud.lose("store_disk", Verdict.LOSE_REPLY)
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.events(server, "delete"), bool, "the delete to fail")
    cloud.wait(server, "RESCUE")
    cloud.settle()
    is_rescued(cloud, server)
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_a_delete_that_is_put_off_can_be_forced(cloud: Cloud) -> None:
    server = cloud.boot()
    with cloud.held("store_disk") as reached:
        cloud.member.compute.delete_server(server.id)
        assert reached.wait(30)
        assert act(cloud, server, "forceDelete") == 202
    is_gone(cloud, server)
