"""Operations that are no moves, on the same engine: what a failure, a lost answer, a dead host or a second conductor leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway import errors
from causeway.context import admin_context
from causeway.model.states import PowerState
from causeway.operations.requests import discard_prepared
from causeway.rpc.transport import Verdict
from causeway.store.api import journal, proposals
from causeway.store.clock import utc_now
from tests.functional.servers.broken_hosts import force_down
from tests.functional.servers.dead_hosts import come_back, left_on
from tests.functional.servers.moves_cloud import Cloud, another_conductor, until
from tests.lease_checks import end_lease

pytestmark = [pytest.mark.embedded("reaches into drivers and conductors"), pytest.mark.usefixtures("dead")]


def act(cloud: Cloud, server: Any, action: str, value: Any = None) -> Any:
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json={action: value}, microversion="2.79")
    assert answer.status_code < 300, answer.text
    return answer


def newest(cloud: Cloud, server: Any) -> Any:
    return journal.of_server(cloud.parts.api_database, server.id)[-1]


def images_of(cloud: Cloud, server: Any) -> list[str]:
    found = cloud.admin.image.images(instance_uuid=server.id)
    return [image.id for image in found]


def host_of(cloud: Cloud, server: Any) -> str:
    found: str = cloud.show(server).compute_host
    return found


def test_a_shelve_whose_image_can_not_be_stored_restores_the_server(cloud: Cloud) -> None:
    server = cloud.boot()
    host = host_of(cloud, server)
    cloud.driver(host).guest_write(server.id, "precious")
    cloud.without_patience()
    cloud.fail("status", "/file$", service="image", method="PUT", status=403)
    act(cloud, server, "shelve")
    until(lambda: newest(cloud, server).state, lambda state: state == "failed", "the shelve to fail")
    cloud.wait(server, "ACTIVE")
    assert cloud.driver(host).inspect(server.id).power_state is PowerState.RUNNING
    assert "precious" in cloud.driver(host).guest_read(server.id)
    assert images_of(cloud, server) == []
    assert cloud.faults(server)[-1].message


def test_a_rebuild_whose_answer_is_lost_is_done_once(cloud: Cloud) -> None:
    server = cloud.boot()
    driver = cloud.driver(host_of(cloud, server))
    spawned = []
    original = driver.spawn

    def spawn(*arguments: Any, **named: Any) -> Any:
        spawned.append(1)
        return original(*arguments, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(driver, "spawn", spawn)
        cloud.lose("rebuild_guest", Verdict.LOSE_REPLY)
        act(cloud, server, "rebuild", {"imageRef": cloud.image_id})
        cloud.wait(server, "ACTIVE")
    assert spawned == [1]
    (step, _end) = journal.steps(cloud.parts.api_database, newest(cloud, server).id)
    assert step.attempt == 2


def test_another_conductor_takes_an_unshelve_over(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.driver(host_of(cloud, server)).guest_write(server.id, "precious")
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED_OFFLOADED")
    with another_conductor(cloud) as other, cloud.held("rebuild_guest") as begun:
        act(cloud, server, "unshelve")
        assert begun.wait(10)
        owner = newest(cloud, server).owner
        taker = other if other._services.life.owner != owner else cloud.parts.conductor

        def taken_over() -> bool:
            # The owner that hangs renews its lease.
            end_lease(cloud.parts.api_database, newest(cloud, server))
            taker._keeper.take_over()
            return bool(newest(cloud, server).owner != owner)

        until(taken_over, bool, "the takeover")
    cloud.wait(server, "ACTIVE")
    assert "precious" in cloud.driver(host_of(cloud, server)).guest_read(server.id)
    assert images_of(cloud, server) == []


def test_an_offload_continues_without_a_host_that_is_dead(cloud: Cloud, dead: Callable[..., None]) -> None:
    cloud.option("shelved_offload_time", -1)
    server = cloud.boot()
    host = host_of(cloud, server)
    cloud.driver(host).guest_write(server.id, "precious")
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED")
    dead(host)
    act(cloud, server, "shelveOffload")
    cloud.wait(server, "SHELVED_OFFLOADED")
    assert left_on(cloud, host) == ["remove_guest"]
    act(cloud, server, "unshelve")
    there = cloud.wait(server, "ACTIVE").compute_host
    assert there != host and "precious" in cloud.driver(there).guest_read(server.id)
    come_back(cloud, host)
    assert left_on(cloud, host) == [] and not cloud.driver(host).inspect(server.id).has_disks
    assert "precious" in cloud.driver(there).guest_read(server.id)


def test_evacuating_a_server_cancels_what_needs_its_dead_host(cloud: Cloud, dead: Callable[..., None]) -> None:
    server = cloud.boot()
    host = host_of(cloud, server)
    dead(host, fenced=False)
    image = act(cloud, server, "createImage", {"name": "late"}).json()["image_id"]
    until(lambda: newest(cloud, server).error, bool, "the image to wait for its host")
    force_down(cloud.embedded, host, True)
    refused = cloud.admin.compute.post(f"/servers/{server.id}/action", json={"evacuate": {}}, microversion="2.79")
    assert refused.status_code == 409 and "was cancelled. Try again" in refused.text
    until(lambda: newest(cloud, server).state, lambda state: state == "failed", "the image to be abandoned")
    assert cloud.admin.image.find_image(image) is None
    act(cloud, server, "evacuate", {})
    assert cloud.wait(server, "ACTIVE").compute_host != host


def test_a_server_that_is_deleted_during_a_rebuild_that_can_not_continue(
    cloud: Cloud, dead: Callable[..., None]
) -> None:
    server = cloud.boot()
    host = host_of(cloud, server)
    dead(host, fenced=False)
    act(cloud, server, "rebuild", {"imageRef": cloud.image_id})
    until(lambda: newest(cloud, server).error, bool, "the rebuild to wait for its host")
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to be gone")
    come_back(cloud, host)
    assert not cloud.driver(host).inspect(server.id).has_disks


def dies_before_acceptance(cloud: Cloud, server: Any, action: str, value: Any = None) -> None:
    """The API dies when the server is swapped; a conductor refuses what nobody accepted."""

    def die(*_: Any) -> bool:
        raise RuntimeError("the API ends here")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("causeway.requests.acceptance._accept", die)
        answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json={action: value}, microversion="2.79")
        assert answer.status_code == 500
    proposed = newest(cloud, server)
    assert proposed.state == "proposed"
    with cloud.parts.api_database.write() as connection:
        row = journal.OPERATIONS.update().where(journal.OPERATIONS.c.id == proposed.id)
        connection.execute(row.values(lease_until=utc_now(-3600.0)))
    cloud.parts.conductor._keeper.take_over()
    until(lambda: cloud.show(server), lambda found: found.task_state is None, "the request to be refused")
    cloud.settle()


@pytest.mark.expects_errors("action failed unexpectedly")
def test_an_unshelve_that_is_not_accepted_leaves_the_image_that_it_needs(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.driver(host_of(cloud, server)).guest_write(server.id, "precious")
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED_OFFLOADED")
    dies_before_acceptance(cloud, server, "unshelve")
    act(cloud, server, "unshelve")
    cloud.wait(server, "ACTIVE")
    assert "precious" in cloud.driver(host_of(cloud, server)).guest_read(server.id)


@pytest.mark.expects_errors("action failed unexpectedly")
def test_an_image_that_is_not_accepted_goes_unless_it_has_data(cloud: Cloud) -> None:
    server = cloud.boot()
    dies_before_acceptance(cloud, server, "createImage", {"name": "never"})
    until(lambda: images_of(cloud, server), lambda found: found == [], "the image to go")
    image = act(cloud, server, "createImage", {"name": "kept"}).json()["image_id"]
    cloud.settle()
    conductor = cloud.parts.conductor._services
    discard_prepared(conductor, admin_context(), newest(cloud, server))
    assert cloud.admin.image.get_image(image).status == "active"


def test_an_unshelve_whose_server_was_reset_meanwhile_keeps_the_image(cloud: Cloud) -> None:
    server = cloud.boot()
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED_OFFLOADED")
    with cloud.held("rebuild_guest") as begun:
        act(cloud, server, "unshelve")
        assert begun.wait(10)
        act(cloud, server, "os-resetState", {"state": "error"})
    cloud.settle()
    assert len(images_of(cloud, server)) == 1
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to be gone")
    assert images_of(cloud, server) == []


def test_a_request_that_is_not_accepted_leaves_no_image(cloud: Cloud) -> None:
    server = cloud.boot()
    with pytest.MonkeyPatch.context() as patched:

        def away(*_: Any) -> bool:
            raise errors.DatabaseFailed("The database of the API failed.")

        patched.setattr("causeway.requests.acceptance.PAUSES", ())
        patched.setattr(proposals, "accept_in", away)
        answer = cloud.member.compute.post(
            f"/servers/{server.id}/action", json={"createImage": {"name": "never"}}, microversion="2.79"
        )
        assert answer.status_code == 503
    found = cloud.wait(server, "ACTIVE")
    assert found.task_state is None and images_of(cloud, server) == []
    assert [move.recipe for move in journal.of_server(cloud.parts.api_database, server.id)] == ["build"]
