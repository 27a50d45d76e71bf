"""Hosts are closed while they are emptied and opened again afterwards; what administrators do with them counts for more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.model.drains import Afterwards, How, Scope
from causeway.store.api import drains as store
from tests.functional.servers.moves_cloud import another_conductor
from tests.functional.servers.slow_conductors import Hold

from .drains_cloud import DYING, DrainsCloud, lose_lease, until

ONE, TWO = "cell1-host1", "cell1-host2"
THERE = "cell2-host1"
CLOUD = DYING
pytestmark = pytest.mark.embedded("acts at points of this process")
BROKEN = "It is to be repaired."


def disable(cloud: DrainsCloud, host: str, reason: str | None = BROKEN) -> None:
    body = {"status": "disabled"} | ({} if reason is None else {"disabled_reason": reason})
    answer = cloud.admin.compute.put(f"/os-services/{cloud.service(host).id}", json=body, microversion="2.53")
    assert answer.status_code == 200, answer.text


def waits(cloud: DrainsCloud, **request: Any) -> tuple[Any, str]:
    """A server, and a drain that waits for its owner's confirm."""
    server = cloud.on(ONE)
    drain = cloud.started(
        {server.id: (THERE, How.WARM)}, **{"afterwards": Afterwards.CONFIRM_LATER, "confirm_after": 24.0} | request
    )
    cloud.becomes_row(drain, server, "moved")
    return server, drain


@pytest.mark.parametrize("ending", ["cancel", "rollback"])
def test_what_it_closed_is_opened_and_what_an_administrator_closed_is_not(cloud: DrainsCloud, ending: str) -> None:
    disable(cloud, TWO)
    _server, drain = waits(cloud)
    assert cloud.closed() == {ONE: f"Drain {drain} empties it.", TWO: BROKEN}
    cloud.act(drain, ending)
    cloud.becomes_drain(drain, "cancelled", "rolled_back")
    assert cloud.closed() == {TWO: BROKEN}


@pytest.mark.parametrize("reason", [BROKEN, None, "by its name"])
def test_what_an_administrator_closes_meanwhile_stays_closed(cloud: DrainsCloud, reason: str | None) -> None:
    _server, drain = waits(cloud)
    if reason == "by its name":
        reason, body = None, {"host": ONE, "binary": "nova-compute"}
        assert cloud.admin.compute.put("/os-services/disable", json=body, microversion="2.1").status_code == 200
    else:
        disable(cloud, ONE, reason)
    cloud.act(drain, "rollback")
    cloud.becomes_drain(drain, "rolled_back")
    assert cloud.closed() == {ONE: reason}


def test_what_an_administrator_closes_at_the_same_moment_is_theirs(
    cloud: DrainsCloud, at_point: Callable[..., None]
) -> None:
    server = cloud.on(ONE)
    at_point("drain.close.noted", lambda: disable(cloud, ONE))
    drain = cloud.started({server.id: (THERE, How.WARM)}, scope=Scope(hosts=[ONE]), afterwards=Afterwards.OWNERS)
    cloud.becomes_drain(drain, "done")
    assert cloud.closed() == {ONE: BROKEN}
    cloud.act(drain, "rollback")
    cloud.becomes_drain(drain, "rolled_back")
    assert cloud.closed() == {ONE: BROKEN}


@pytest.mark.parametrize("point", ["drain.close.noted", "drain.open.before"])
def test_one_that_lost_its_lease_neither_closes_nor_opens(
    cloud: DrainsCloud, at_point: Callable[..., None], point: str
) -> None:
    """It stood still before it wrote; when it continues the drain has ended, and its host is somebody else's business."""
    api = cloud.parts.api_database
    server = cloud.on(ONE)
    hold = Hold(at_point, point)
    drain = cloud.started({server.id: (THERE, How.WARM)}, scope=Scope(hosts=[ONE]), afterwards=Afterwards.OWNERS)
    if point == "drain.open.before":
        cloud.becomes_drain(drain, "done")
        cloud.act(drain, "rollback")
    assert hold.reached.wait(30)
    slow = store.get(api, drain).owner
    with another_conductor(cloud) as other:
        own = cloud.parts.conductor
        quick, slow_one = (own, other) if own._services.life.owner != slow else (other, own)

        def taken_over() -> bool:
            lose_lease(cloud, drain)
            quick._drains.look()
            return bool(store.get(api, drain).owner != slow)

        until(taken_over, bool, "the takeover")
        if point == "drain.close.noted":
            cloud.act(drain, "cancel", {"undo": True})
        cloud.becomes_drain(drain, "cancelled", "rolled_back")
        assert cloud.closed() == {}
        if point == "drain.open.before":
            disable(cloud, ONE)
        hold.opened.set()
        slow_one._drains._threads.wait(30)
    assert sorted(cloud.closed()) == ([] if point == "drain.close.noted" else [ONE])


def test_a_host_of_two_drains_is_closed_as_long_as_one_of_them_runs(cloud: DrainsCloud) -> None:
    other = cloud.on(TWO)
    _server, drain = waits(cloud, scope=Scope(hosts=[ONE]))
    second = cloud.started(
        {other.id: (THERE, How.WARM)},
        scope=Scope(hosts=[ONE, TWO]),
        afterwards=Afterwards.CONFIRM_LATER,
        confirm_after=24.0,
    )
    cloud.becomes_row(second, other, "moved")
    cloud.act(drain, "cancel")
    cloud.becomes_drain(drain, "cancelled")
    until(cloud.closed, lambda found: sorted(found) == [ONE, TWO], "the second one to close it")
    cloud.act(second, "rollback")
    cloud.becomes_drain(second, "rolled_back")
    assert cloud.closed() == {}


def test_a_server_on_its_way_to_a_host_is_waited_for(cloud: DrainsCloud, at_point: Callable[..., None]) -> None:
    """Its host was chosen before that was closed: nothing shows that it is there yet, but what it holds in Placement."""
    hold = Hold(at_point, "build.PlaceInCell.do.before")
    late = cloud.asked_for(ONE)
    assert hold.reached.wait(30)
    drain = cloud.started({}, scope=Scope(hosts=[ONE]))
    note = until(lambda: cloud.shown(drain)["note"], bool, "a note")
    assert note == f"1 server is on its way to {ONE}: it was placed there before the host was closed."
    assert cloud.shown(drain)["state"] == "running"
    hold.opened.set()
    late = cloud.wait(late, "ACTIVE")
    cloud.becomes_drain(drain, "done")
    assert cloud.host_of(late) != ONE
