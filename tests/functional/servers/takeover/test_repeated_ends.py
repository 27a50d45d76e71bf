"""The last write of a move is repeated when its conductor dies behind it: what the server's user asked for meanwhile stays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from causeway import errors
from causeway.faults import injector
from causeway.model.states import TaskState
from causeway.moves.steps.confirm import FinishConfirm
from causeway.moves.steps.revert import FinishRevert, ReturnRecords
from causeway.operations.delete import TearDown
from causeway.store.api import mappings
from causeway.store.cell import copies
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("breaks moves inside one process")
CLOUD = {"overrides": {"moves": {"lease": 1.5, "first_pause": 0.05, "stuck_retry_interval": 0.2}}}


def away() -> errors.CausewayError:
    return errors.DatabaseFailed("The database is unreachable.")


def followed(work: Callable[..., Any], act: Callable[[], Any], when: Callable[..., bool] = lambda *_: True) -> Any:
    """A function after whose first call something happens; nobody hears then that it went well."""
    left = [act]

    def call(*arguments: Any) -> Any:
        found = work(*arguments)
        if left and when(*arguments):
            left.pop()()
            raise away()
        return found

    return call


def check_resized(cloud: Cloud, server: Any, flavor: str, moves: int) -> None:
    cloud.settle()
    assert len(cloud.moves(server)) == moves
    found = cloud.wait(server, "VERIFY_RESIZE")
    assert found.flavor["original_name"] == flavor
    assert cloud.confirmed(server).status == "ACTIVE"


@pytest.mark.parametrize(
    ("operation", "step", "flavor"),
    [("confirm", FinishConfirm, "any.medium"), ("revert", FinishRevert, "gen2.small")],
    ids=["confirm", "revert"],
)
def test_a_resize_outlives_the_end_of_the_move_before(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, operation: str, step: Any, flavor: str
) -> None:
    server = cloud.boot()
    cloud.resized(server)

    def ask() -> None:
        cloud.member.compute.resize_server(server.id, flavor)

    monkeypatch.setattr(step, "do", followed(step.do, ask))
    getattr(cloud.member.compute, f"{operation}_server_resize")(server.id)
    check_resized(cloud, server, flavor, moves=3)


def test_a_resize_outlives_the_end_of_one_that_failed(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.without_patience()
    server = cloud.boot()
    cloud.break_driver(["cell2-host1", "cell2-host2"], "spawn")

    def ask() -> None:
        cloud.heal()
        cloud.member.compute.resize_server(server.id, "gen2.small")

    is_end = lambda point: point.endswith(".roll_back.after")  # noqa: E731
    monkeypatch.setattr(injector, "reach", followed(injector.reach, ask, is_end))
    cloud.member.compute.resize_server(server.id, "gen2.small")
    check_resized(cloud, server, "gen2.small", moves=2)


def test_a_revert_outlives_the_end_of_one_that_failed(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.without_patience()
    server = cloud.boot()
    cloud.resized(server)

    def fail(*_arguments: Any) -> None:
        raise errors.OperationFailed("It does not work.")

    def ask() -> None:
        monkeypatch.setattr(ReturnRecords, "do", works)
        cloud.member.compute.revert_server_resize(server.id)

    works = ReturnRecords.do
    is_end = lambda point: point.endswith(".roll_back.after")  # noqa: E731
    monkeypatch.setattr(ReturnRecords, "do", fail)
    monkeypatch.setattr(injector, "reach", followed(injector.reach, ask, is_end))
    cloud.member.compute.revert_server_resize(server.id)
    cloud.settle()
    assert cloud.show(server).status == "ACTIVE"
    assert len(cloud.moves(server)) == 3


def test_a_server_that_could_not_be_deleted_is_not_deleted_by_a_later_move(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.boot()

    def refuse(*_arguments: Any) -> None:
        raise errors.OperationFailed("It is refused.")

    with monkeypatch.context() as patched:
        # Only a refusal ends a delete.
        patched.setattr(TearDown, "do", refuse)
        cloud.member.compute.delete_server(server.id)
        until(lambda: cloud.show(server), lambda found: found.status == "ERROR", "the server to say so")
    cloud.admin.compute.reset_server_state(server.id, "active")
    cloud.resized(server)
    assert cloud.confirmed(server).status == "ACTIVE"
    assert not mappings.get(cloud.parts.api_database, server.id).queued_for_delete


def test_users_may_change_a_server_while_its_move_waits_for_the_other_cell(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records that it leaves are closed for the time of the switch, and not for as long as the switch fails."""
    server = cloud.boot()
    write = copies.write

    def fail(*arguments: Any, **options: Any) -> None:
        bundle = arguments[1]
        if bundle.instance.task_state == TaskState.RESIZE_FINISH or bundle.instance.vm_state == "resized":
            failed.append(True)
            if not is_back.is_set():
                raise away()
        write(*arguments, **options)

    failed: list[bool] = []
    is_back = threading.Event()
    monkeypatch.setattr(copies, "write", fail)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    until(lambda: len(failed), lambda times: times > 1, "the switch to fail")
    cloud.member.compute.update_server(server.id, name="renamed")
    is_back.set()
    assert cloud.wait(server, "VERIFY_RESIZE").name == "renamed"


def test_what_went_well_at_the_second_try_has_no_message(cloud: Cloud) -> None:
    """An action's message says why it failed."""
    server = cloud.boot()
    cloud.break_driver(["cell2-host1", "cell2-host2"], "spawn", times=1)
    cloud.resized(server)
    action = cloud.action(server, "resize")
    assert ("compute_finish_snapshot_based_resize_at_dest", "Success") in cloud.events(server, "resize")
    assert action.message is None


def test_a_move_that_is_rolled_back_may_be_cancelled(cloud: Cloud) -> None:
    """Else the whole would be tried again, though its user does not want it any more."""
    cloud.option("patience", 0.0, "moves")
    server = cloud.boot()
    cloud.break_driver(["cell2-host1", "cell2-host2"], "spawn")
    with cloud.held("drop_move_at_dest") as reached:
        cloud.member.compute.resize_server(server.id, "gen2.small")
        assert reached.wait(20)
        migration = cloud.migration(server)
        cloud.admin.compute.delete(f"/servers/{server.id}/migrations/{migration.id}", microversion="2.80")
    cloud.settle()
    assert cloud.migration(server).status == "cancelled"
    assert len(cloud.moves(server)) == 1
    assert cloud.show(server).fault is None
