"""A conductor that stops tells the others what it lets go of: nobody waits for a lease, or for a look at the journal."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from moves_cloud import PATIENCE, Cloud, until

from causeway import roles
from causeway.conductor.service import ConductorService
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.moves import MoveState
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import journal

pytestmark = pytest.mark.embedded("starts and stops conductors")


@pytest.fixture
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """One worker for moves; a lease so long that whoever waits for a third of it waits in vain."""
    embedded = EmbeddedCloud(
        tmp_path_factory.mktemp("cloud"), port=0, overrides={"moves": {"lease": 10 * PATIENCE, "workers": 1}}
    )
    embedded.start()
    yield Cloud(embedded)
    embedded.stop()


@pytest.fixture
def second(cloud: Cloud) -> Iterator[ConductorService]:
    """A conductor that is not started yet."""
    embedded = cloud.parts
    service = roles.conductor(embedded.around, embedded.api_database, embedded.cells, "second")
    yield service
    service.stop()


def test_the_other_one_goes_on_at_once(cloud: Cloud, second: ConductorService) -> None:
    """With the move under way, and with the one that waited for a worker."""
    under_way, waiting = cloud.boot("under-way"), cloud.boot("waiting")
    arrived, go_on = threading.Event(), threading.Event()

    def hold(message: Outgoing) -> Verdict:
        if message.method == "prep_snapshot_based_resize_at_source" and not arrived.is_set():
            arrived.set()
            assert go_on.wait(PATIENCE)
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = hold
    for server in (under_way, waiting):
        cloud.member.compute.resize_server(server.id, "gen2.small")
        assert arrived.wait(PATIENCE)
    database = cloud.parts.api_database
    first = cloud.parts.conductor
    until(lambda: len(first._keeper._in_hand), lambda moves: moves == 2, "both moves to be in hand")
    second.start()
    second.recover()

    ending = threading.Thread(target=first.stop)
    ending.start()
    go_on.set()
    ending.join(PATIENCE)

    for server in (under_way, waiting):
        cloud.wait(server, "VERIFY_RESIZE")
        cloud.settle()
        (move,) = journal.of_server(database, server.id)
        assert (move.owner_host, move.state) == ("second", MoveState.DONE)
        steps = [step.step for step in journal.steps(database, move.id)]
        assert steps.count("PrepResizeAtSource") == 1
