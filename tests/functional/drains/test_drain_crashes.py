"""A conductor dies in the middle of a drain, or stands still while another one continues: no server moves twice, none is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from causeway.faults.points import DRAIN_POINTS
from causeway.model.drains import Afterwards, DrainState, How, Limits
from causeway.store.api import drains as store
from tests.functional.servers.dying_threads import THREADS_DIE
from tests.functional.servers.moves_cloud import another_conductor
from tests.functional.servers.slow_conductors import Hold

from .drains_cloud import DYING, DrainsCloud, lose_lease, until

ONE, TWO = "cell1-host1", "cell1-host2"
THERE = "cell2-host1"
CLOUD = DYING
pytestmark = THREADS_DIE


@pytest.mark.parametrize(
    "point", [point for point in DRAIN_POINTS if not point.startswith(("drain.revert", "drain.open"))]
)
def test_a_drain_survives_the_death_of_its_conductor(
    cloud: DrainsCloud, dies_at: Callable[[str], None], point: str
) -> None:
    live, warm = cloud.on(ONE), cloud.on(TWO)
    dies_at(point)
    drain = cloud.started({live.id: (THERE, How.NEAR_LIVE), warm.id: (THERE, How.WARM)})
    cloud.becomes_drain(drain, "done")
    for server in (live, warm):
        assert cloud.host_of(server) == THERE
        assert cloud.moved_times(server) == 1
        assert cloud.row(drain, server)["attempts"] == 0
    assert sorted(cloud.closed()) == [ONE, TWO]
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize("point", [point for point in DRAIN_POINTS if point.startswith(("drain.revert", "drain.open"))])
def test_a_rollback_survives_the_death_of_its_conductor(
    cloud: DrainsCloud, dies_at: Callable[[str], None], point: str
) -> None:
    servers = [cloud.on(ONE), cloud.on(TWO)]
    drain = cloud.started({server.id: (THERE, How.WARM) for server in servers}, afterwards=Afterwards.OWNERS)
    cloud.becomes_drain(drain, "done")
    dies_at(point)
    cloud.act(drain, "rollback")
    shown = cloud.becomes_drain(drain, "rolled_back")
    assert shown["progress"]["servers"] == {"reverted": 2}
    assert [cloud.host_of(server) for server in servers] == [ONE, TWO]
    assert cloud.closed() == {}
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize(
    "point", ["drain.move.before", "drain.move.noted", "drain.confirm.before", "drain.confirm.after"]
)
def test_one_that_stood_still_while_another_one_continued_asks_for_nothing(
    cloud: DrainsCloud, at_point: Callable[..., None], point: str
) -> None:
    server = cloud.on(ONE)
    hold = Hold(at_point, point)
    drain = cloud.started({server.id: (THERE, How.WARM)})
    assert hold.reached.wait(30)
    slow = store.get(cloud.parts.api_database, drain).owner
    with another_conductor(cloud) as other:
        quick = cloud.parts.conductor if cloud.parts.conductor._services.life.owner != slow else other

        def taken_over() -> bool:
            lose_lease(cloud, drain)
            quick._drains.look()
            return bool(store.get(cloud.parts.api_database, drain).owner != slow)

        until(taken_over, bool, "the takeover")
        cloud.becomes_drain(drain, "done")
        hold.opened.set()
        slow_one = other if quick is not other else cloud.parts.conductor
        slow_one._drains._threads.wait(30)
    cloud.settle()
    assert cloud.host_of(server) == THERE
    assert cloud.moved_times(server) == 1
    assert cloud.actions(server).count("migrate") == 1
    assert cloud.show(server).status == "ACTIVE"
    assert store.get(cloud.parts.api_database, drain).state is DrainState.DONE
    assert cloud.audit().disagreements == []


def test_a_drain_that_was_paused_in_between_asks_for_nothing(cloud: DrainsCloud, at_point: Callable[..., None]) -> None:
    server = cloud.on(ONE)
    hold = Hold(at_point, "drain.move.noted")
    drain = cloud.started({server.id: (THERE, How.WARM)})
    assert hold.reached.wait(30)
    cloud.act(drain, "pause")
    hold.opened.set()
    cloud.becomes_row(drain, server, "pending")
    assert cloud.moves(server) == []
    assert (cloud.host_of(server), cloud.show(server).task_state) == (ONE, None)
    cloud.act(drain, "resume")
    cloud.becomes_drain(drain, "done")
    assert cloud.moved_times(server) == 1


def test_a_conductor_that_stops_hands_its_drain_to_the_other(cloud: DrainsCloud) -> None:
    servers = [cloud.on(ONE) for _ in range(2)]
    api = cloud.parts.api_database
    cloud.option("interval", 0.0, "drains")
    with another_conductor(cloud) as other, cloud.held("begin_round"):
        own = cloud.parts.conductor
        drain = cloud.started({server.id: (THERE, How.WARM) for server in servers}, limits=Limits(total=1))
        until(lambda: cloud.states(drain), lambda states: "asked" in states, "the first to be asked for")
        owner = store.get(api, drain).owner
        assert owner == own._services.life.owner
        other._drains.look()
        other._drains._threads.wait(30)
        assert store.get(api, drain).owner == owner
        own._drains.release()
        # The periodic look of the first one may have it again at once: it does not stop in earnest.
        until(lambda: store.get(api, drain).owner, bool, "somebody to have it")
    cloud.becomes_drain(drain, "done")
    assert all(cloud.moved_times(server) == 1 for server in servers)
