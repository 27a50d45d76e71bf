"""Moves whose host is down use up no workers: what is tried again, or undone, looks before it sends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from causeway.model.sagas import SagaState
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import journal
from tests.functional.servers.dead_hosts import (
    CLOUD,
    FINISH,
    FLAVORS,
    HAND_OVER,
    PREPARE,
    REACHES,
    come_back,
    moved,
)
from tests.functional.servers.moves_cloud import Cloud, until

__all__ = ["CLOUD"]

pytestmark = [pytest.mark.embedded("stops compute services and starts them again"), pytest.mark.usefixtures("dead")]


def counting(cloud: Cloud, method: str, first: Callable[[str], Verdict]) -> list[str]:
    """The hosts that are asked for one of these from now on; ``first`` says what becomes of the first order."""
    asked: list[str] = []

    def on_send(message: Outgoing) -> Verdict:
        if message.method != method or message.server is None:
            return Verdict.DELIVER
        asked.append(message.server)
        return first(message.server) if len(asked) == 1 else Verdict.DELIVER

    cloud.embedded.around.transports.on_send = on_send
    return asked


def attempts(cloud: Cloud, server: Any) -> int:
    """How often the present step of the server's move was tried."""
    move = journal.of_server(cloud.parts.api_database, server.id)[-1]
    return journal.steps(cloud.parts.api_database, move.id)[-1].attempt


@pytest.fixture
def impatient(cloud: Cloud) -> None:
    """Calls that nobody answers end soon (others have time, on a busy machine too); what can't continue is soon tried again."""
    for name in ("rpc_response_timeout", "long_rpc_timeout"):
        cloud.option(name, 5)
    for name in ("stuck_retry_interval", "first_pause"):
        cloud.option(name, 0.2, "moves")


@REACHES
@pytest.mark.usefixtures("impatient")
def test_a_move_that_waits_for_its_source_holds_no_worker_and_asks_nobody(
    cloud: Cloud, dead: Callable[..., None], reach: str
) -> None:
    server = cloud.boot(flavor=FLAVORS[reach][0])

    def dies(host: str) -> Verdict:
        dead(host, fenced=False)
        return Verdict.LOSE_REQUEST

    asked = counting(cloud, HAND_OVER, dies)
    cloud.member.compute.resize_server(server.id, FLAVORS[reach][1])
    until(lambda: asked, bool, "the source to be asked")
    keeper = cloud.embedded.conductor._keeper
    until(lambda: keeper.is_busy, lambda busy: not busy, "the move to be released")
    move = journal.of_server(cloud.parts.api_database, server.id)[-1]
    assert (move.state, move.owner) == (SagaState.RUNNING, None)
    tries = attempts(cloud, server)
    until(lambda: attempts(cloud, server), lambda found: found > tries, "it to be tried again")
    assert len(asked) == 1
    come_back(cloud, asked[0])
    cloud.wait(server, "VERIFY_RESIZE")
    assert len(asked) == 2


@REACHES
@pytest.mark.usefixtures("impatient")
def test_a_revert_behind_its_pivot_asks_a_source_that_is_down_once(
    cloud: Cloud, dead: Callable[..., None], reach: str, caplog: pytest.LogCaptureFixture
) -> None:
    server, source, _target = moved(cloud, reach)

    def dies(host: str) -> Verdict:
        dead(host, fenced=False)
        return Verdict.LOSE_REQUEST

    asked = counting(cloud, "restore_at_source", dies)
    cloud.member.compute.revert_server_resize(server.id)
    moves = partial(cloud.moves, server)
    until(lambda: moves()[-1].state, lambda state: state is SagaState.STUCK, "the revert to be stuck")
    until(lambda: attempts(cloud, server), lambda found: found > 2, "it to be tried again")
    # Parked after each attempt.
    begun = attempts(cloud, server)
    assert sum("is stuck" in record.message for record in caplog.records) >= begun - 1
    assert asked == [source]
    come_back(cloud, source)
    cloud.settle()
    assert asked == [source, source]
    assert cloud.show(server).compute_host == source


@pytest.mark.usefixtures("impatient")
def test_an_undo_does_not_ask_a_source_that_is_down(cloud: Cloud, dead: Callable[..., None]) -> None:
    server = cloud.boot_from_volume()
    source = cloud.show(server).compute_host
    cloud.without_patience()
    cloud.break_driver(["cell2-host1", "cell2-host2"], "spawn")
    asked: list[str | None] = []

    def on_send(message: Outgoing) -> Verdict:
        if message.method == FINISH:
            dead(source, fenced=False)
        asked.extend([message.server] if message.method == "restore_at_source" else [])
        return Verdict.DELIVER

    cloud.embedded.around.transports.on_send = on_send
    cloud.member.compute.resize_server(server.id, "gen2.small")
    moves = partial(cloud.moves, server)
    until(lambda: [move.state for move in moves()], lambda states: states == [SagaState.STUCK], "the undo to be stuck")
    until(lambda: attempts(cloud, server), lambda found: found > 2, "it to be tried again")
    assert asked == []
    come_back(cloud, source)
    cloud.failed(server)
    assert asked == [source]


@pytest.mark.usefixtures("impatient")
def test_a_target_that_died_since_it_was_chosen_is_left_without_being_asked(
    cloud: Cloud, dead: Callable[..., None]
) -> None:
    server = cloud.boot()
    asked = counting(cloud, PREPARE, lambda _host: Verdict.DELIVER)
    cloud.fail("status", "/bindings$", service="network", method="POST", status=503)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    until(lambda: journal.of_server(cloud.parts.api_database, server.id)[-1].data["port_ids"], bool, "it to prepare")
    until(lambda: attempts(cloud, server), lambda found: found > 1, "it to be tried again")
    move = journal.of_server(cloud.parts.api_database, server.id)[-1]
    dead(move.data["selection"]["host"], fenced=False)
    cloud.parts.devcloud.faults.clear()
    found = cloud.wait(server, "VERIFY_RESIZE")
    assert asked == [found.compute_host] != [move.data["selection"]["host"]]
