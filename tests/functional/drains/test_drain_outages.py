"""What a drain needs is unavailable for a while, or for good: it waits, goes another way, or says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway import errors
from causeway.drains import asking, movable
from causeway.model.drains import Afterwards, How, Limits, Scope, Targets
from causeway.model.operations import CONFIRM_RESIZE
from causeway.moves import requests
from causeway.requests import acceptance
from causeway.store.api import drains as store
from causeway.store.cell import hosts
from tests.functional.servers.dead_hosts import away
from tests.functional.servers.moves_cloud import until

from .drains_cloud import DrainsCloud

ONE, TWO = "cell1-host1", "cell1-host2"
THERE, ELSEWHERE = "cell2-host1", "cell2-host2"
CLOUD: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"rpc_response_timeout": 4},
        "moves": {"lease": 2.0, "first_pause": 0.1, "stuck_retry_interval": 0.5},
        "drains": {"interval": 0.1, "retry_pause": 0.1},
        "quota": {"ram": -1},
    }
}
pytestmark = pytest.mark.embedded("makes databases and hosts of a process unreachable")


def test_a_drain_waits_while_the_api_database_is_unavailable(cloud: DrainsCloud) -> None:
    servers = [cloud.on(ONE), cloud.on(TWO)]
    with cloud.held("begin_round") as reached:
        drain = cloud.started({server.id: (THERE, How.WARM) for server in servers}, limits=Limits(total=1))
        assert reached.wait(30)
        with away("the API"):
            failed_looks(cloud)
    cloud.becomes_drain(drain, "done")
    assert [cloud.host_of(server) for server in servers] == [THERE, THERE]
    assert all(cloud.moved_times(server) == 1 for server in servers)
    assert all(row["attempts"] == 0 for row in cloud.rows(drain).values())
    assert cloud.audit().disagreements == []


def failed_looks(cloud: DrainsCloud) -> None:
    """Conductors look at drains while they can't; nothing of that is heard outside."""
    with pytest.raises(errors.DatabaseFailed):
        cloud.parts.conductor._drains.look()


@pytest.mark.parametrize("ending", ["done", "rolled_back"])
def test_a_drain_waits_while_the_database_of_its_cell_is_unavailable(cloud: DrainsCloud, ending: str) -> None:
    server = cloud.on(ONE)
    drain = cloud.drain({server.id: (THERE, How.WARM)}, afterwards=Afterwards.OWNERS)
    if ending == "rolled_back":
        cloud.act(drain, "start")
        cloud.becomes_drain(drain, "done")
    with away("cell1"):
        cloud.act(drain, "start" if ending == "done" else "rollback")
        if ending == "done":
            note = until(lambda: cloud.shown(drain)["note"], bool, "a note")
            assert note == "The database of cell1 does not answer."
        cloud.sees(drain)
        # Its revert is asked for where it lives, and waits itself.
        assert cloud.states(drain) == ({"pending": 1} if ending == "done" else {"reverting": 1})
    cloud.becomes_drain(drain, ending)
    assert cloud.host_of(server) == (THERE if ending == "done" else ONE)
    assert sorted(cloud.closed()) == ([ONE, TWO] if ending == "done" else [])
    assert cloud.moved_times(server) == 1


def test_a_drain_waits_while_the_database_of_the_target_is_unavailable(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    with away("cell2"):
        drain = cloud.started({server.id: (THERE, How.WARM)})
        cloud.sees(drain)
        assert cloud.shown(drain)["state"] == "running"
    cloud.becomes_drain(drain, "done")
    assert cloud.show(server).compute_host in (THERE, ELSEWHERE)
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_the_acceptance_of_a_move_is_not_answered(
    cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """Whether it was accepted nobody knows at first; it is asked for once more only if it was not."""
    server = cloud.on(ONE)
    works, failed = requests.request_resize, list[Any]()

    def request_resize(*args: Any, **kwargs: Any) -> Any:
        if not failed:
            failed.append(None)
            if lost == "answer":
                works(*args, **kwargs)
            raise errors.DatabaseFailed("It did not answer.")
        return works(*args, **kwargs)

    monkeypatch.setattr(asking, "request_resize", request_resize)
    drain = cloud.started({server.id: (THERE, How.WARM)})
    cloud.becomes_drain(drain, "done")
    assert cloud.moved_times(server) == 1
    assert cloud.actions(server).count("migrate") == 1
    assert cloud.row(drain, server)["attempts"] == 0


def test_nobody_answers_whether_a_confirm_was_accepted(cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.on(ONE)
    works, failed = acceptance._accept, list[Any]()

    def accept(api: Any, request: Any) -> bool:
        accepted: bool = works(api, request)
        if request.operation.recipe == CONFIRM_RESIZE and not failed:
            failed.append(None)
            raise errors.DatabaseFailed("It did not answer.")
        return accepted

    monkeypatch.setattr(acceptance, "_accept", accept)
    drain = cloud.started({server.id: (THERE, How.WARM)})
    cloud.becomes_drain(drain, "done")
    assert failed and cloud.actions(server).count("confirmResize") == 1


def fill(cloud: DrainsCloud, host: str) -> Any:
    """A server on a host that leaves no room for another one."""
    (size,) = {node.memory_mb for node in hosts.list_nodes(cloud.cell(host[:5]), host=host)}
    return cloud.on(host, "filler", cloud.flavor("all-that-is-left", ram=size - 700, vcpus=1))


def test_the_target_is_full_half_way(cloud: DrainsCloud) -> None:
    """Who finds no room is tried again, waits with the reason when there is none for long, and goes when there is some."""
    cloud.without_patience()
    first, second = cloud.on(ONE), cloud.on(TWO)
    with cloud.held("begin_round") as reached:
        drain = cloud.started(
            {each.id: (THERE, How.WARM) for each in (first, second)},
            limits=Limits(total=1),
            targets=Targets(hosts=[THERE]),
        )
        assert reached.wait(30)
        filler = fill(cloud, THERE)
    (row,) = until(
        lambda: [row for row in cloud.rows(drain).values() if row["state"] == "blocked"], bool, "one without room"
    )
    assert "MEMORY_MB" in row["why"] or "memory" in row["why"]
    note = until(lambda: cloud.shown(drain)["note"], lambda note: note and "can't go" in note, "a note")
    assert note.startswith("Servers that can't go: 1.")
    cloud.member.compute.delete_server(filler.id)
    cloud.becomes_drain(drain, "done")
    assert all(cloud.host_of(each) == THERE for each in (first, second))
    assert cloud.audit().disagreements == []


def test_a_target_is_dead_for_good_half_way(cloud: DrainsCloud, dead: Callable[..., None]) -> None:
    cloud.without_patience()
    servers = [cloud.on(ONE), cloud.on(TWO)]
    with cloud.held("begin_round") as reached:
        drain = cloud.started({server.id: (THERE, How.WARM) for server in servers}, limits=Limits(total=1))
        assert reached.wait(30)
        dead(THERE)
    cloud.becomes_drain(drain, "done")
    assert [cloud.host_of(server) for server in servers] == [ELSEWHERE] * 2
    assert [cloud.show(server).status for server in servers] == ["ACTIVE"] * 2


def test_a_source_is_dead_for_good_half_way(cloud: DrainsCloud, dead: Callable[..., None]) -> None:
    """Its servers wait, with the reason; the others continue. Who is evacuated by an administrator is passed over."""
    cloud.without_patience()
    lost, other = cloud.on(ONE), cloud.on(TWO)
    drain = cloud.drain({each.id: (THERE, How.WARM) for each in (lost, other)}, scope=Scope(hosts=[ONE, TWO]))
    dead(ONE)
    cloud.act(drain, "start")
    cloud.becomes_row(drain, other, "done")
    row = cloud.becomes_row(drain, lost, "blocked")
    assert ONE in row["why"] and "evacuate" in row["help"]
    assert cloud.shown(drain)["state"] == "running"
    cloud.act(drain, "cancel")
    cloud.becomes_drain(drain, "cancelled")
    assert cloud.closed() == {}


def test_many_servers_of_an_unreachable_cell_cost_one_look_at_it(cloud: DrainsCloud) -> None:
    """Each of them would wait for a timeout; the others of the drain would wait for all of those."""
    servers = [cloud.on(ONE) for _ in range(3)]
    drain = cloud.drain({server.id: (THERE, How.WARM) for server in servers})
    asked: list[str] = []
    works = movable.find_movable

    def find_movable(look: Any, server: Any) -> Any:
        asked.append(server.instance_uuid)
        return works(look, server)

    with pytest.MonkeyPatch.context() as patched, away("cell1"):
        patched.setattr(asking, "find_movable", find_movable)
        cloud.act(drain, "start")
        until(lambda: cloud.shown(drain)["note"], bool, "a note")
        cloud.sees(drain)
    assert asked == []
    cloud.becomes_drain(drain, "done")
    assert store.get(cloud.parts.api_database, drain).note is None
