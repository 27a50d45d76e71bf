"""A suspended server leaves its cell: it stays suspended, and its next resume finds its memory where it is."""

from __future__ import annotations

from typing import Any

import pytest

from causeway import errors

from .drains_cloud import DrainsCloud, until
from .suspended_servers import check, resumed, suspended
from .test_left_behind import ELSEWHERE, ONE, THERE, TWO, act, cell_of, planned

CLOUD: dict[str, Any] = {
    "overrides": {
        "drains": {"interval": 0.1, "retry_pause": 0.1},
        "moves": {"first_pause": 0.1, "stuck_retry_interval": 0.2},
    }
}


def drained(cloud: DrainsCloud, server: Any, **request: Any) -> Any:
    """The server's row when the drain has ended."""
    drain, plan = planned(cloud, **request)
    assert (plan["movable"], plan["blocked"]) == (1, 0), cloud.row(drain, server)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    cloud.settle()
    return cloud.row(drain, server)


def test_a_suspended_server_moves_with_its_memory_and_is_resumed_there(cloud: DrainsCloud) -> None:
    server, memory = suspended(cloud)
    drain, plan = planned(cloud)
    row = cloud.row(drain, server)
    assert (row["state"], row["how"], row["target_cell"], row["pause"]) == ("pending", "near_live", "cell2", 0.0)
    assert plan["movable"] == 1
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    row = cloud.row(drain, server)
    assert (row["how"], row["stood_still"]) == ("near_live", 0.0)
    assert cloud.moves(server)[-1].recipe == "near_live_migration"
    assert cloud.migration(server).status == "completed"
    check(cloud, server, memory, "cell2")
    # From now on it is a server as any other.
    act(cloud, server, "suspend")
    cloud.wait(server, "SUSPENDED")
    resumed(cloud, server, memory)


@pytest.mark.parametrize("way", ["as images", "cut off"])
def test_saved_memory_goes_through_the_image_service_where_hosts_do_not_reach_one_another(
    cloud: DrainsCloud, way: str
) -> None:
    server, memory = suspended(cloud)
    if way == "as images":
        cloud.option("direct", "never", "moves")
    else:
        cloud.cut_offers()
    drained(cloud, server)
    check(cloud, server, memory, "cell2")


def test_a_suspended_server_may_move_on_and_come_back_without_being_resumed(cloud: DrainsCloud) -> None:
    server, memory = suspended(cloud)
    drained(cloud, server)
    assert cell_of(cloud, server) == "cell2"
    cloud.end_drains()
    drained(cloud, server, scope={"cells": ["cell2"]}, targets={"hosts": [ONE]})
    assert cloud.host_of(server) == ONE
    check(cloud, server, memory, "cell1")


@pytest.mark.parametrize("what", ["shelve", "delete", "hard reboot"])
def test_a_suspended_server_that_has_moved_is_one_as_any_other(cloud: DrainsCloud, what: str) -> None:
    server, memory = suspended(cloud)
    drained(cloud, server)
    cloud.end_drains()
    driver = cloud.driver(cloud.host_of(server))
    if what == "delete":
        cloud.member.compute.delete_server(server.id)
        until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "it to go")
    elif what == "shelve":
        act(cloud, server, "shelve")
        cloud.wait(server, "SHELVED_OFFLOADED")
    else:
        act(cloud, server, "reboot", {"type": "HARD"})
        cloud.wait(server, "ACTIVE")
        assert driver.guest_memory(server.id) != memory
    cloud.settle()
    assert driver.saved_memory(server.id) is None
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize("method", ["save_memory", "stash_disks", "define_suspended"])
def test_a_server_stays_suspended_where_it_was_if_the_hypervisor_fails(
    cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    server, memory = suspended(cloud)
    for host in (THERE, ELSEWHERE) if method == "define_suspended" else (ONE,):
        works = getattr(cloud.driver(host), method)

        def fail(*args: Any, works: Any = works, **more: Any) -> Any:
            works(*args, **more)
            raise errors.GuestFailed(f"{method} does not work")

        monkeypatch.setattr(cloud.driver(host), method, fail)
    drain, _plan = planned(cloud, retries=0)
    cloud.act(drain, "start")
    row = cloud.becomes_row(drain, server, "failed")
    assert f"{method} does not work" in row["why"]
    monkeypatch.undo()
    check(cloud, server, memory, "cell1")


@pytest.mark.expects_errors("is stuck in do of LetGuestGoOn")
def test_the_source_keeps_all_of_it_until_the_target_has_shown_its_memory(
    cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, memory = suspended(cloud)
    drain, _plan = planned(cloud, targets={"hosts": [THERE]})
    driver, kept = cloud.driver(THERE), []
    works = driver.define_suspended

    def lost(spec: Any) -> None:
        works(spec)
        path = driver.saved_memory(server.id)
        assert path is not None
        kept.append(path.read_bytes())
        path.unlink()

    monkeypatch.setattr(driver, "define_suspended", lost)
    cloud.act(drain, "start")
    stuck = until(
        lambda: [
            move for move in cloud.moves(server) if move.error and "is missing at its target" in move.error["message"]
        ],
        bool,
        "the move to be stuck",
    )
    assert stuck[0].pivoted
    assert cloud.driver(ONE).saved_memory(server.id, stashed=True) is not None
    (driver.files.disks(server.id) / "memory").write_bytes(kept[0])
    cloud.becomes_drain(drain, "done")
    check(cloud, server, memory, "cell2")


def test_moving_suspended_servers_is_not_for_users(cloud: DrainsCloud) -> None:
    """As in Nova."""
    server, memory = suspended(cloud)
    for action, user in (("os-migrateLive", cloud.admin), ("migrate", cloud.admin)):
        body = {"host": None, "block_migration": "auto"} if action == "os-migrateLive" else None
        answer = user.compute.post(f"/servers/{server.id}/action", json={action: body}, microversion="2.96")
        assert answer.status_code == 409, answer.text
    check_untouched(cloud, server, memory)


def check_untouched(cloud: DrainsCloud, server: Any, memory: list[str]) -> None:
    assert cloud.moves(server) == []
    assert cell_of(cloud, server) == "cell1"
    cloud.end_drains()
    resumed(cloud, server, memory)


@pytest.mark.parametrize(
    ("request_", "why", "help_"),
    [
        ({"how": "cold"}, "would lose its memory", "Resume it"),
        ({"how": "warm"}, "would lose its memory", "Resume it"),
        ({"flavors": {"any.small": "any.medium"}}, "would lose its memory", "Resume it"),
        ({"scope": {"hosts": [ONE]}, "targets": {"hosts": [TWO]}}, "goes to other cells only", "Resume it"),
    ],
)
def test_what_would_cost_it_its_memory_is_not_done(
    cloud: DrainsCloud, request_: dict[str, Any], why: str, help_: str
) -> None:
    server, memory = suspended(cloud)
    drain, plan = planned(cloud, **request_)
    row = cloud.row(drain, server)
    assert (plan["movable"], row["state"]) == (0, "blocked")
    assert why in row["why"] and help_ in row["help"], row
    cloud.act(drain, "start")
    cloud.sees(drain)
    assert cloud.row(drain, server)["state"] == "blocked"
    check_untouched(cloud, server, memory)


def test_one_that_is_suspended_after_it_was_planned_goes_all_the_same(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    memory = cloud.remember(server, "a line")
    drain, _plan = planned(cloud)
    act(cloud, server, "suspend")
    cloud.wait(server, "SUSPENDED")
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert cloud.show(server).status == "SUSPENDED"
    assert cell_of(cloud, server) == "cell2"
    act(cloud, server, "resume")
    cloud.wait(server, "ACTIVE")
    assert cloud.memory(server) == memory


def test_one_that_is_resumed_after_it_was_planned_goes_as_any_other(cloud: DrainsCloud) -> None:
    server, memory = suspended(cloud)
    drain, _plan = planned(cloud)
    resumed(cloud, server, memory)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert cloud.show(server).status == "ACTIVE"
    assert cell_of(cloud, server) == "cell2"
    assert cloud.memory(server) == memory


def test_one_whose_host_is_dead_waits_for_its_memory(cloud: DrainsCloud) -> None:
    server, memory = suspended(cloud)
    drain, _plan = planned(cloud)
    service = cloud.service(ONE)
    cloud.admin.compute.update_service_forced_down(service, ONE, "nova-compute", forced=True)
    try:
        cloud.act(drain, "start")
        row = cloud.becomes_row(drain, server, "blocked")
        assert "memory that it was suspended with" in row["why"]
    finally:
        cloud.admin.compute.update_service_forced_down(service, ONE, "nova-compute", forced=False)
    cloud.becomes_drain(drain, "done")
    check(cloud, server, memory, "cell2")
