"""Two conductors that were given the same `host`, one of which has a clock that is wrong, leave one another's moves alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from moves_cloud import PATIENCE, Cloud, until
from tests import lease_checks

from causeway import roles
from causeway.conductor.service import ConductorService
from causeway.model.moves import MoveState
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import journal

pytestmark = pytest.mark.embedded("starts conductors in its own process")


@pytest.fixture
def namesake(cloud: Cloud) -> Iterator[ConductorService]:
    parts = cloud.parts
    service = roles.conductor(parts.around, parts.api_database, parts.cells, parts.conductor._services.host)
    yield service
    service.stop()


@pytest.mark.parametrize("ahead", [0.0, 4.0, 3600.0])
def test_a_move_stays_with_who_has_it(
    cloud: Cloud, namesake: ConductorService, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    server = cloud.boot()
    arrived, go_on = threading.Event(), threading.Event()

    def hold(message: Outgoing) -> Verdict:
        if message.method == "prep_snapshot_based_resize_at_source" and not arrived.is_set():
            arrived.set()
            assert go_on.wait(PATIENCE)
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = hold
    cloud.member.compute.resize_server(server.id, "gen2.small")
    assert arrived.wait(PATIENCE)
    before = _move(cloud, server)
    with monkeypatch.context() as patched:
        lease_checks.put_clock_ahead(patched, ahead)
        namesake._keeper.take_over()
        until(lambda: namesake._keeper.is_busy, lambda busy: not busy, "the namesake to rest")
    assert (_move(cloud, server).owner, _move(cloud, server).epoch) == (before.owner, before.epoch)
    go_on.set()
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    after = _move(cloud, server)
    assert (after.state, after.owner, after.epoch) == (MoveState.DONE, before.owner, before.epoch)


def _move(cloud: Cloud, server: Any) -> Any:
    return journal.of_server(cloud.parts.api_database, server.id)[-1]
