"""A scheduler stands still, and answers when nobody waits for it any more: it claims nothing, and leaves nothing."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.clients.placement import PlacementClient
from causeway.model import operations
from causeway.rpc.heartbeat import Heartbeats
from causeway.scheduler import Scheduler
from causeway.store.api import journal
from tests.functional.servers.dying_threads import THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"report_interval": 1, "rpc_response_timeout": 1},
        "fault_injection": {"enabled": True},
    }
}
pytestmark = THREADS_DIE


class Frozen:
    """Holds up each call of ``method`` of ``owner`` as if its process stood still: no heartbeat reaches the caller."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, method: str) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        self._answered = threading.Condition()
        self._unanswered = 0
        work, select, beat = getattr(owner, method), Scheduler.select_destinations, Heartbeats.during

        def held(*given: Any, **options: Any) -> Any:
            self.reached.set()
            assert self.opened.wait(30)
            return work(*given, **options)

        def counted(*given: Any, **options: Any) -> Any:
            with self._answered:
                self._unanswered += 1
            try:
                return (held if method == "select_destinations" else select)(*given, **options)
            finally:
                with self._answered:
                    self._unanswered -= 1
                    self._answered.notify_all()

        def beat_unless_frozen(heartbeats: Heartbeats, incoming: Any) -> Any:
            return nullcontext() if heartbeats._name.startswith("rpc-scheduler") else beat(heartbeats, incoming)

        monkeypatch.setattr(owner, method, held)
        monkeypatch.setattr(Scheduler, "select_destinations", counted)
        monkeypatch.setattr(Heartbeats, "during", beat_unless_frozen)

    def thaw(self) -> None:
        """Lets all of them continue, and waits until they are answered."""
        self.opened.set()
        with self._answered:
            assert self._answered.wait_for(lambda: not self._unanswered, 20)


def operation(cloud: Cloud, server: Any, recipe: str) -> Any:
    found = journal.of_server(cloud.parts.api_database, server.id)
    return [move for move in found if move.recipe == recipe][-1]


def ended(cloud: Cloud, server: Any, recipe: str) -> Any:
    return until(
        lambda: operation(cloud, server, recipe), lambda move: move.state in ("failed", "done"), f"the {recipe}"
    )


def steps_of(cloud: Cloud, server: Any) -> Any:
    return journal.steps(cloud.parts.api_database, operation(cloud, server, operations.BUILD).id)


def ask_for(cloud: Cloud) -> Any:
    return cloud.member.compute.create_server(
        name="server", flavor_id="any.small", image_id=cloud.image_id, networks="none"
    )


# Before it has looked for a host, and when it is about to send the claim.
BEFORE, SENDING, MOVING = (
    (Scheduler, "select_destinations"),
    (PlacementClient, "_claim_first"),
    (PlacementClient, "claim_for_move"),
)


@pytest.mark.parametrize(("owner", "method"), [BEFORE, SENDING])
def test_nothing_is_claimed_for_a_server_that_was_deleted_meanwhile(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    frozen = Frozen(monkeypatch, owner, method)
    server = ask_for(cloud)
    assert frozen.reached.wait(10)
    cloud.member.compute.delete_server(server.id)
    ended(cloud, server, operations.BUILD)
    frozen.thaw()
    assert cloud.allocations(server.id) == {}
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


@pytest.mark.parametrize(("owner", "method"), [BEFORE, MOVING])
def test_a_move_that_was_cancelled_meanwhile_claims_nothing(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    server = cloud.boot()
    held = cloud.allocations(server.id)
    frozen = Frozen(monkeypatch, owner, method)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    assert frozen.reached.wait(10)
    resize = journal.of_server(cloud.parts.api_database, server.id)[-1]
    assert cloud.admin.compute.delete(f"/os-causeway/operations/{resize.id}").status_code == 202
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    frozen.thaw()
    assert cloud.allocations(server.id) == held and cloud.allocations(resize.migration_uuid) == {}
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
    frozen.reached.clear()
    cloud.confirmed(cloud.resized(server))


def test_a_build_whose_first_orders_were_not_answered_in_time_is_built_once(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The orders of the attempts before the last one claim nothing, which would keep the last one from a host."""
    frozen = Frozen(monkeypatch, *BEFORE)
    server = ask_for(cloud)
    until(lambda: steps_of(cloud, server), lambda steps: steps and steps[-1].attempt == 3, "the third attempt")
    frozen.thaw()
    built = cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert list(cloud.allocations(server.id)) == [built.compute_host]
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
