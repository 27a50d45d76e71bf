"""Two conductors that were given the same `host`, one of which has a clock that is wrong, leave one another's moves alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from causeway import errors
from causeway.conductor.service import ConductorService
from causeway.conductor.upkeep.recovery import WorkEndpoint
from causeway.context import admin_context
from causeway.model.sagas import SagaState
from causeway.roles.conductor import make_conductor
from causeway.store.api import journal
from causeway.store.cell import instances
from causeway.store.database import utcnow
from tests import lease_checks
from tests.functional.servers.moves_cloud import PATIENCE, Cloud, until

pytestmark = pytest.mark.embedded("starts conductors in its own process")


@pytest.fixture
def namesake(cloud: Cloud) -> Iterator[ConductorService]:
    parts = cloud.parts
    service = make_conductor(parts.around, parts.api_database, parts.cells, parts.conductor._services.host)
    yield service
    service.stop()


@pytest.mark.parametrize("ahead", [0.0, 4.0, 3600.0])
def test_a_move_stays_with_who_has_it(
    cloud: Cloud, namesake: ConductorService, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    server = cloud.boot()
    with cloud.held("prep_snapshot_based_resize_at_source") as arrived:
        cloud.member.compute.resize_server(server.id, "gen2.small")
        assert arrived.wait(PATIENCE)
        before = _move(cloud, server)
        with monkeypatch.context() as patched:
            lease_checks.put_clock_ahead(patched, ahead)
            namesake._keeper.take_over()
            until(lambda: namesake._keeper.is_busy, lambda busy: not busy, "the namesake to rest")
        assert (_move(cloud, server).owner, _move(cloud, server).epoch) == (before.owner, before.epoch)
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    after = _move(cloud, server)
    assert (after.state, after.owner, after.epoch) == (SagaState.DONE, before.owner, before.epoch)


def test_of_two_conductors_of_one_name_none_takes_up_what_the_other_may_work_on(
    cloud: Cloud, namesake: ConductorService
) -> None:
    """Who asks one of them what it works on learns of neither: a task of the other one would be taken for abandoned."""
    server = cloud.boot()
    database = cloud.cell("cell1")
    long_ago = utcnow() - timedelta(hours=1)
    with database.write() as connection:
        table = instances.TABLE
        busy = {"task_state": "powering-off", "updated_at": long_ago}
        connection.execute(table.update().where(table.c.uuid == server.id).values(busy))
    for conductor in (namesake, cloud.parts.conductor):
        conductor._recovery.look()
        assert cloud.record(server, "cell1").task_state == "powering-off"
    endpoint = WorkEndpoint(namesake._services.life, namesake._at_work)
    with pytest.raises(errors.ServiceRefused, match="give each its own"):
        endpoint.work_in_hand(admin_context())
    namesake.stop()
    cloud.parts.conductor._recovery.look()
    until(lambda: cloud.show(server).task_state, lambda task: task is None, "the task to be ended")


def _move(cloud: Cloud, server: Any) -> Any:
    return journal.of_server(cloud.parts.api_database, server.id)[-1]
