"""Whoever lists servers or migrations while they move sees each exactly once; of two requests at once one is taken."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from causeway import errors
from causeway.store.api import journal, migrations
from causeway.store.cell import instances
from causeway.store.database import utcnow
from tests.functional.servers.moves_cloud import Cloud

MOVING_SERVERS = 4
LISTS = (
    "/servers",
    "/servers/detail",
    "/servers/detail?name=moving",
    "/servers?all_tenants=1&limit=100",
    "/servers/detail?locked=false",
)


class Watcher:
    """Lists in a tight loop, in a thread of its own, and notes every list that is not what it should be."""

    def __init__(self, cloud: Cloud, servers: list[Any]) -> None:
        self._compute, self._wanted = cloud.connection("admin", project="demo").compute, sorted(s.id for s in servers)
        self._stopping = threading.Event()
        self.rounds, self.wrong = 0, []  # type: int, list[str]
        self.states: set[str] = set()
        self.migrations = Counter[int]()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for path in LISTS:
                servers = self._get(path, "servers")
                if sorted(server["id"] for server in servers) != self._wanted:
                    self.wrong.append(f"{path}: {[server['id'] for server in servers]}")
                self.states |= {server["status"] for server in servers if "status" in server}
            by_status = [
                server["id"]
                for status in ("ACTIVE", "RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE")
                for server in self._get(f"/servers/detail?status={status}", "servers")
                if server["status"] != status
            ]
            self.wrong += [f"wrong status: {uuid}" for uuid in by_status]
            found = Counter(each["uuid"] for each in self._get("/os-migrations", "migrations"))
            self.wrong += [f"migration {uuid} {count} times" for uuid, count in found.items() if count != 1]
            self.migrations[len(found)] += 1
            self.rounds += 1

    def _get(self, path: str, key: str) -> list[dict[str, Any]]:
        answer = self._compute.get(path)
        if answer.status_code != 200:
            self.wrong.append(f"{path}: {answer.status_code} {answer.text}")
            return []
        found: list[dict[str, Any]] = answer.json()[key]
        return found


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_lists_are_right_while_servers_move(cloud: Cloud, end: str) -> None:
    servers = [cloud.boot(name=f"moving-{number}") for number in range(MOVING_SERVERS)]
    before = len(list(cloud.admin.compute.migrations()))
    with Watcher(cloud, servers) as watcher:
        for server in servers:
            cloud.member.compute.resize_server(server.id, "gen2.small")
        for server in servers:
            cloud.wait(server, "VERIFY_RESIZE")
        act = (
            cloud.member.compute.confirm_server_resize
            if end == "confirm"
            else cloud.member.compute.revert_server_resize
        )
        for server in servers:
            act(server.id)
        for server in servers:
            cloud.wait(server, "ACTIVE")
        cloud.settle()
    assert watcher.wrong == []
    assert watcher.rounds > 2
    assert watcher.states >= {"RESIZE", "VERIFY_RESIZE"}
    assert max(watcher.migrations) == before + MOVING_SERVERS


def at_once(*acts: Any) -> list[int]:
    """The status codes of requests that are sent at the same time."""
    barrier = threading.Barrier(len(acts))

    def send(act: Any) -> int:
        barrier.wait(10)
        return int(act().status_code)

    with ThreadPoolExecutor(len(acts)) as pool:
        return sorted(pool.map(send, acts))


def action(cloud: Cloud, server: Any, body: dict[str, Any]) -> Any:
    compute = cloud.connection("demo").compute
    compute.get("/flavors")
    return lambda: compute.post(f"/servers/{server.id}/action", json=body)


def test_of_several_resizes_at_once_one_is_taken(cloud: Cloud) -> None:
    server = cloud.boot()
    resizes = [action(cloud, server, {"resize": {"flavorRef": flavor}}) for flavor in ("gen2.small", "any.medium") * 2]
    assert at_once(*resizes) == [202, 409, 409, 409]
    cloud.wait(server, "VERIFY_RESIZE")
    assert len(list(cloud.admin.compute.migrations(instance_uuid=server.id))) == 1
    assert cloud.actions(server) == ["create", "resize"]
    cloud.confirmed(server)


def test_a_resize_that_loses_the_race_is_never_seen(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another resize is accepted when this one was checked already, and has not changed the server yet."""
    server, swap = cloud.boot(), instances.swap_in
    seen: list[list[str]] = []

    def slower(_connection: Any, uuid: str, **_changes: Any) -> None:
        seen.append([each.uuid for each in cloud.admin.compute.migrations(instance_uuid=server.id)])
        raise errors.StateChanged(f"Server {uuid} is being changed by another request.")

    with monkeypatch.context() as patched:
        patched.setattr(instances, "swap_in", slower)
        assert action(cloud, server, {"resize": {"flavorRef": "gen2.small"}})().status_code == 409
    assert (seen, instances.swap_in) == ([[]], swap)
    assert list(cloud.admin.compute.migrations(instance_uuid=server.id)) == []
    cloud.resized(server)
    cloud.confirmed(server)


@pytest.mark.parametrize("dead", [(migrations, "insert_in"), (instances, "swap_in")], ids=["accept", "swap"])
@pytest.mark.expects_errors("action failed unexpectedly")
def test_what_an_api_that_died_had_not_accepted_never_runs(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, dead: tuple[Any, str]
) -> None:
    """It died before it made the request count, or before it changed the server: the user got no answer that it was taken."""
    server = cloud.boot()
    with monkeypatch.context() as patched:
        patched.setattr(*dead, lambda *_, **__: _die())
        assert action(cloud, server, {"resize": {"flavorRef": "gen2.small"}})().status_code == 500
    # So long ago that no API can be about to send it.
    with cloud.parts.api_database.write() as connection:
        connection.execute(
            journal.OPERATIONS.update()
            .where(journal.OPERATIONS.c.instance_uuid == server.id)
            .values(lease_until=utcnow() - timedelta(hours=1))
        )
    cloud.parts.conductor._keeper.take_over()
    cloud.settle()
    found = cloud.show(server)
    assert (found.status, found.task_state) == ("ACTIVE", None)
    assert list(cloud.admin.compute.migrations(instance_uuid=server.id)) == []
    cloud.confirmed(cloud.resized(server))


def _die() -> None:
    raise RuntimeError("the API died here")


def test_of_a_confirm_and_a_revert_at_once_one_is_taken(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    codes = at_once(action(cloud, server, {"confirmResize": None}), action(cloud, server, {"revertResize": None}))
    assert codes[0] in (202, 204) and codes[1] in (400, 409)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    status = cloud.migration(server).status
    assert (codes[0], status) in ((204, "confirmed"), (202, "reverted"))
    assert cloud.cleanups(server, "cell1" if status == "confirmed" else "cell2") == []


@pytest.mark.parametrize("body", [{"confirmResize": None}, {"revertResize": None}], ids=["confirm", "revert"])
def test_what_is_asked_for_twice_is_done_once(cloud: Cloud, body: dict[str, Any]) -> None:
    server = cloud.boot()
    cloud.resized(server)
    codes = at_once(action(cloud, server, body), action(cloud, server, body))
    assert codes[0] in (202, 204) and codes[1] in (400, 409)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.actions(server) == ["create", "resize", *body]
    again = action(cloud, server, body)()
    assert again.status_code == 409
