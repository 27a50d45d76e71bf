"""``/os-migrations`` has one row for a move at all times, though two cells hold the server; and quota counts it once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.patience import until


class Watch:
    """Asks again and again, on a thread of its own, while something continues."""

    def __init__(self, look: Callable[[], Any]) -> None:
        self._look, self._over = look, threading.Event()
        self.seen: list[Any] = []
        self._thread = threading.Thread(target=self._run, name="watch")

    def _run(self) -> None:
        while not self._over.is_set():
            self.seen.append(self._look())

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join()


@pytest.mark.parametrize("end", ["confirmed", "reverted"])
def test_a_move_is_one_row_and_one_server_all_the_time(cloud: Cloud, end: str) -> None:
    server = cloud.boot()
    other = cloud.connection("admin", project="demo")

    def look() -> tuple[list[str], int]:
        rows = other.compute.get("/os-migrations", params={"instance_uuid": server.id}).json()["migrations"]
        used = other.compute.get_limits().absolute.instances_used
        return [row["uuid"] for row in rows], used

    with Watch(look) as watch:
        cloud.resized(server)
        getattr(cloud, end)(server)
    (only,) = cloud.admin.compute.migrations(instance_uuid=server.id)
    seen = [rows for rows, _used in watch.seen]
    # None before it is asked for, and then this one for ever.
    first = seen.index([only.uuid])
    assert all(rows == [] for rows in seen[:first]) and all(rows == [only.uuid] for rows in seen[first:])
    assert {used for _rows, used in watch.seen} == {1}
    assert only.status == end


def test_pages_and_times_over_moves_of_many_servers(cloud: Cloud) -> None:
    servers = [cloud.boot(f"mover-{number}") for number in range(3)]
    for server in servers:
        cloud.resized(server)
    whole = cloud.admin.compute.get("/os-migrations").json()["migrations"]
    page = cloud.admin.compute.get("/os-migrations?limit=2").json()
    assert [row["uuid"] for row in page["migrations"]] == [row["uuid"] for row in whole[:2]]
    marker = page["migrations"][-1]["uuid"]
    following = cloud.admin.compute.get(f"/os-migrations?limit=2&marker={marker}").json()["migrations"]
    assert [row["uuid"] for row in following] == [row["uuid"] for row in whole[2:4]]
    # What changed since the newest one began; a confirm counts as a change. A second is meant whole, so that one is waited for.
    moment = max(row["updated_at"] for row in whole)
    next_second = datetime.fromisoformat(moment).replace(microsecond=0) + timedelta(seconds=1)
    until(lambda: datetime.now(UTC).replace(tzinfo=None), lambda now: now >= next_second, "the next second")
    cloud.confirmed(servers[0])
    changed = cloud.admin.compute.get("/os-migrations", params={"changes-since": moment}).json()["migrations"]
    assert servers[0].id in [row["instance_uuid"] for row in changed]
    before = cloud.admin.compute.get("/os-migrations", params={"changes-before": moment}).json()["migrations"]
    assert servers[0].id not in [row["instance_uuid"] for row in before]
