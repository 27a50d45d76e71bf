"""Known bugs, section 7: invariants. More of them: tests/faults (interleavings, matrix, storm). See docs/known-bugs.md."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from causeway.requests import acceptance
from causeway.rpc.transport import Verdict
from causeway.store.api import deletions
from tests.functional.servers.moves_cloud import until

from .known_bugs_cloud import KnownBugsCloud

ENDS: dict[str, dict[str, Any]] = {
    "confirm": {"confirmResize": None},
    "revert": {"revertResize": None},
    "resize": {"resize": {"flavorRef": "any.medium"}},
    "stop": {"os-stop": None},
}


@contextmanager
def watched(cloud: KnownBugsCloud, server: Any) -> Iterator[list[str]]:
    """What is seen, again and again until the context is left, that must never be."""
    wrong: list[str] = []
    stopping, compute = threading.Event(), cloud.connection("admin", project="demo").compute
    driver = cloud.driver("cell1-host1")

    def watch() -> None:
        gone = False
        while not stopping.is_set():
            running = driver.running_anywhere(server.id)
            if len(running) > 1:
                wrong.append(f"runs on {running}")
            for path in ("/servers", "/servers/detail"):
                listed = [each["id"] for each in compute.get(path).json()["servers"]].count(server.id)
                if listed > 1 or (gone and listed):
                    wrong.append(f"{path} lists it {listed} times")
                gone = gone or not listed
        if gone and compute.get(f"/servers/{server.id}").status_code != 404:
            wrong.append("it was left out of a list, and is not deleted")

    thread = threading.Thread(target=watch, name="watch", daemon=True)
    thread.start()
    try:
        yield wrong
    finally:
        stopping.set()
        thread.join()


@given(
    acts=st.lists(st.sampled_from([*ENDS, "delete"]), min_size=2, max_size=5),
    flavor=st.sampled_from(["gen2.small", "any.medium"]),
)
@settings(
    max_examples=8,
    database=None,
    derandomize=True,
    # What fails here fails because of when things happen: fewer requests would show something else.
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_whatever_is_asked_for_at_once_a_server_runs_once_and_is_listed_once(
    cloud: KnownBugsCloud, acts: list[str], flavor: str
) -> None:
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)
    cloud.resized(server, flavor)
    barrier = threading.Barrier(len(acts))

    def ask(act: str) -> int:
        barrier.wait(10)
        if act == "delete":
            return int(cloud.admin.compute.delete(f"/servers/{server.id}").status_code)
        return int(cloud.act(server, ENDS[act]).status_code)

    with watched(cloud, server) as wrong:
        with ThreadPoolExecutor(len(acts)) as pool:
            codes = list(zip(acts, pool.map(ask, acts), strict=True))
        if ("delete", 204) in codes:
            cloud.gone(server)
        else:
            until(lambda: cloud.show(server).task_state, lambda task: task is None, "the server to be settled")
        cloud.settle()
    assert wrong == []
    assert {code for _act, code in codes} <= {202, 204, 400, 404, 409}, codes
    until(lambda: cloud.audit().disagreements, lambda found: found == [], "everything to agree")
    if "delete" in acts:
        assert ("delete", 204) in codes
        assert cloud.hosts_of(server) == {} and cloud.attachments(server) == []
    cloud.clean()
    cloud.member.block_storage.delete_volume(volume.id)


def history(cloud: KnownBugsCloud, server: Any) -> list[tuple[str, list[tuple[str, str | None, Any]]]]:
    """Action -> (event, result, end) of each of its events, oldest first."""
    found = []
    for action in list(cloud.admin.compute.server_actions(server.id))[::-1]:
        events = cloud.admin.compute.get_server_action(action.request_id, server.id).events[::-1]
        found.append((action.action, [(e["event"], e["result"], e["finish_time"]) for e in events]))
    return found


def test_every_action_ends_with_a_result_and_every_change_of_state_has_one(cloud: KnownBugsCloud) -> None:
    """What works and what fails, in both recipes: one more action for each, and no event of it is left open."""
    server, volume = cloud.boot(), cloud.volume()
    compute = cloud.member.compute

    def fails(act: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> None:
            cloud.without_patience()
            cloud.lose("prep_snapshot_based_resize_at_dest", Verdict.LOSE_REQUEST, times=9)
            act()
            cloud.failed(server)
            cloud.heal()

        return run

    operations: list[tuple[str, str, Callable[[], Any]]] = [
        ("stop", "SHUTOFF", lambda: compute.stop_server(server.id)),
        ("start", "ACTIVE", lambda: compute.start_server(server.id)),
        ("reboot", "ACTIVE", lambda: compute.reboot_server(server.id, "HARD")),
        ("attach_volume", "ACTIVE", lambda: cloud.attach(server, volume)),
        ("resize", "ACTIVE", fails(lambda: compute.resize_server(server.id, "gen2.small"))),
        ("resize", "VERIFY_RESIZE", lambda: compute.resize_server(server.id, "gen2.small")),
        ("revertResize", "ACTIVE", lambda: compute.revert_server_resize(server.id)),
        ("migrate", "VERIFY_RESIZE", lambda: cloud.admin.compute.migrate_server(server.id)),
        ("confirmResize", "ACTIVE", lambda: compute.confirm_server_resize(server.id)),
        ("detach_volume", "ACTIVE", lambda: cloud.detach(server, volume)),
    ]
    wanted = ["create"]
    for name, status, act in operations:
        act()
        wanted.append(name)
        cloud.wait(server, status)
        cloud.settle()
        if status == "ACTIVE" and name == "detach_volume":
            until(lambda: history(cloud, server)[-1][1], bool, "the event of the detach")
        # Whoever sees the new status finds its action, with the event that says how it ended.
        found = history(cloud, server)
        assert [action for action, _events in found] == wanted
        assert all(events and all(result and end for _event, result, end in events) for _action, events in found), found
        assert found[-1][1][-1][1] == "Success" or status == "ACTIVE"
    failed = next(events for action, events in history(cloud, server) if action == "resize")
    assert "Error" in {result for _event, result, _end in failed}
    assert {result for action, events in found if action != "resize" for _event, result, _end in events} == {"Success"}


@pytest.mark.parametrize("other", ["confirm", "revert", "resize"])
def test_a_delete_that_meets_another_request_is_done(
    cloud: KnownBugsCloud, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """The conductor that is to delete the server sees a move in the journal; its request is refused a moment later."""
    server = cloud.boot()
    if other != "resize":
        cloud.resized(server)
        cloud.settle()
    swap, look, saw = acceptance._swap, deletions.look, threading.Event()
    met: list[str] = []

    def seen(*given: Any) -> Any:
        found = look(*given)
        if found.other is not None and met:
            saw.set()
        return found

    def slow_swap(*given: Any, **named: Any) -> Any:
        if not met:
            # The move is in the journal, and the server's states are not changed yet.
            met.append(other)
            cloud.admin.compute.delete_server(server.id)
            assert saw.wait(20)
        return swap(*given, **named)

    monkeypatch.setattr(deletions, "look", seen)
    monkeypatch.setattr(acceptance, "_swap", slow_swap)
    code = cloud.act(server, ENDS[other]).status_code
    assert met and code == (204 if other == "confirm" else 409)
    cloud.gone(server)
    until(lambda: cloud.audit().disagreements, lambda found: found == [], "everything to agree")


def test_a_server_that_was_reset_while_its_resize_waits_can_be_deleted(cloud: KnownBugsCloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    cloud.settle()
    assert cloud.act(server, {"os-resetState": {"state": "error"}}, who=cloud.admin).status_code == 202
    cloud.member.compute.delete_server(server.id)
    cloud.gone(server)
    until(lambda: cloud.audit().disagreements, lambda found: found == [], "everything to agree")
