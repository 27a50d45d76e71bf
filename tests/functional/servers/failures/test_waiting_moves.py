"""Moves that wait for what passes: nobody is held up by them, users are obeyed, and what was rolled back is tried once more."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from causeway.errors import GuestFailed
from causeway.model.operations import Operation
from causeway.model.sagas import SagaState
from causeway.operations.engine import KNOWLEDGE
from causeway.store.api import journal
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD = {"overrides": {"moves": {"lease": 1.5, "first_pause": 0.05, "stuck_retry_interval": 0.2}}}
PREP_DEST = "compute_prep_snapshot_based_resize_at_dest"


def moves_of(cloud: Cloud, server: Any) -> list[Operation]:
    return cloud.moves(server)


def wait_for_long(cloud: Cloud) -> Any:
    """A server whose move waits in nobody's hands for something that is not there."""
    cloud.option("first_pause", 3600.0, "moves")
    cloud.option("stuck_retry_interval", 3600.0, "moves")
    server = cloud.boot()
    cloud.fail("status", "/bindings$", service="network", method="POST", status=503)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    (move,) = until(
        lambda: moves_of(cloud, server), lambda moves: moves[0].waits_until is not None, "the move to be released"
    )
    assert move.owner is None and move.error is not None and "network service" in move.error["message"]
    assert cloud.show(server).status == "RESIZE"
    return server


def test_a_move_that_waits_is_cancelled_at_once(cloud: Cloud) -> None:
    server = wait_for_long(cloud)
    migration = cloud.migration(server)
    cloud.admin.compute.delete(f"/servers/{server.id}/migrations/{migration.id}")
    cloud.wait(server, "ACTIVE")
    assert cloud.migration(server).status == "cancelled"
    # The server is restored first.
    cloud.settle()
    assert [move.state for move in moves_of(cloud, server)] == [SagaState.FAILED]
    # It stands with the resize, not with the cancel.
    assert "cancelled" in cloud.action(server, "resize").message


def test_a_server_whose_move_waits_is_deleted_at_once(cloud: Cloud) -> None:
    server = wait_for_long(cloud)
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.member.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert cloud.hosts_of(server) == {} and cloud.cleanups(server, "cell2") == []


def test_a_user_is_obeyed_in_the_middle_of_a_pause(cloud: Cloud) -> None:
    """Pauses that are short are waited for in a conductor's hands."""
    cloud.option("first_pause", 2.5, "moves")
    cloud.option("stuck_retry_interval", 2.5, "moves")
    server = cloud.boot()
    cloud.fail("status", "/bindings$", service="network", method="POST", status=503)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    until(lambda: moves_of(cloud, server), lambda moves: moves[0].error is not None, "a step to fail")
    cloud.admin.compute.delete(f"/servers/{server.id}/migrations/{cloud.migration(server).id}")
    cloud.wait(server, "ACTIVE")
    assert cloud.migration(server).status == "cancelled"


def test_what_was_rolled_back_for_a_passing_reason_is_tried_once_more(cloud: Cloud) -> None:
    cloud.option("patience_while_off", 0.0, "moves")
    cloud.option("whole_tries", 2, "moves")
    server = cloud.boot()
    cloud.attach(server, cloud.volume())
    cloud.without_rounds()
    cloud.fail("status", "/file$", service="image", method="PUT", status=503, times=1)
    after = cloud.resized(server)
    cloud.settle()
    assert after.compute_host.startswith("cell2")
    first, second = moves_of(cloud, server)
    assert (first.state, second.state) == (SagaState.FAILED, SagaState.DONE)
    # For its user it is one resize.
    assert first.migration_uuid == second.migration_uuid
    assert len(list(cloud.admin.compute.migrations(instance_uuid=server.id))) == 1
    assert cloud.migration(server).dest_compute == after.compute_host
    events = cloud.events(server, "resize")
    source = "compute_prep_snapshot_based_resize_at_source"
    assert {(source, "Error"), (source, "Success")} <= set(events)
    assert list(cloud.allocations(server.id)) == [after.compute_host]
    assert cloud.reverted(server).status == "ACTIVE"
    assert cloud.cleanups(server, "cell2") == []
    assert len(cloud.attachments(server)) == 1
    assert cloud.allocations(first.migration_uuid) == {}


def test_what_fails_a_second_time_is_rolled_back_for_good(cloud: Cloud) -> None:
    cloud.option("patience_while_off", 0.0, "moves")
    cloud.option("whole_tries", 2, "moves")
    server = cloud.boot()
    before = cloud.reality(server)
    cloud.without_rounds()
    cloud.fail("status", "/file$", service="image", method="PUT", status=503)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert [move.state for move in moves_of(cloud, server)] == [SagaState.FAILED, SagaState.FAILED]
    assert cloud.reality(server) == before
    assert "image service" in cloud.faults(server)[-1].message


def test_what_was_refused_is_not_tried_again(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.without_rounds()
    cloud.fail("status", "/file$", service="image", method="PUT", status=413)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert len(moves_of(cloud, server)) == 1


@pytest.mark.parametrize("failure", [RuntimeError("a mistake"), GuestFailed("The hypervisor is out of order.")])
@pytest.mark.expects_errors("failed unexpectedly")
def test_any_failure_of_a_target_turns_to_the_next_alternate(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    server = cloud.boot()
    failed: list[str] = []
    for host in ("cell2-host1", "cell2-host2"):
        driver = cloud.driver(host)
        inspect = driver.inspect

        def broken(uuid: str, host: str = host, inspect: Any = inspect) -> Any:
            if uuid == server.id and failed in ([], [host]):
                failed[:] = [host]
                raise failure
            return inspect(uuid)

        monkeypatch.setattr(driver, "inspect", broken)
    after = cloud.resized(server)
    (other,) = {"cell2-host1", "cell2-host2"} - set(failed)
    assert after.compute_host == other
    assert [each for each in cloud.events(server, "resize") if each[0] == PREP_DEST] == [
        (PREP_DEST, "Error"),
        (PREP_DEST, "Success"),
    ]
    assert list(cloud.allocations(server.id)) == [other]
    monkeypatch.undo()
    cloud.confirmed(server)
    assert cloud.cleanups(server, "cell1") == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"recipe": "teleport"}, "no recipe teleport"),
        ({"recipe_version": 99}, "can't continue version 99"),
        ({"memory_version": 99}, "not 99"),
    ],
)
def test_a_move_of_another_release_is_left_to_it(cloud: Cloud, changes: dict[str, Any], why: str) -> None:
    server = cloud.boot()
    api = cloud.parts.api_database
    given = {"recipe": "resize", "recipe_version": 2, "memory_version": 4, **changes}
    move = Operation(id=str(uuid.uuid4()), migration_uuid=str(uuid.uuid4()), instance_uuid=server.id, **given)
    move.state, move.owner = SagaState.RUNNING, "conductor-of-tomorrow/1"
    with api.write() as connection:
        journal.insert_in(connection, move)
    try:
        parked = until(
            lambda: journal.get(api, move.id), lambda found: found.parked is not None, "the move to be parked"
        )
        assert parked.state is SagaState.STUCK and parked.owner is None
        assert why in (parked.parked or "")
        # Whoever knows as much leaves it alone, whoever knows something else looks at it.
        assert move.id not in [each.id for each in journal.abandoned(api, set(), 0, knowledge=KNOWLEDGE.digest)]
        assert move.id in [each.id for each in journal.abandoned(api, set(), 0, knowledge="another")]
        assert journal.get(api, move.id).epoch == parked.epoch
    finally:
        with api.write() as connection:
            connection.execute(journal.OPERATIONS.delete().where(journal.OPERATIONS.c.id == move.id))
